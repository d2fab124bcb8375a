"""Models served on loopback: the embedded model with its weights, and the gateway."""
