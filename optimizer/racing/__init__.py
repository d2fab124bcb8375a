"""Many texts compared on few inputs: arms, successive halving over recorded inputs, and the joint choice."""
