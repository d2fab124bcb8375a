"""Many texts compared on few inputs: gains on recorded inputs, what is believed of them, and the joint choice."""
