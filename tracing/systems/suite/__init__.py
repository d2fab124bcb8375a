"""What the conformance suites run: steps of a system, scripted models, and a small system without a model."""
