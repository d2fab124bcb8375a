"""Many texts compared on few inputs: rewrites, successive halving over recorded inputs, and the joint choice."""
