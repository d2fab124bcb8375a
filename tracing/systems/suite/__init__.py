"""The parts of the conformance suite of memory systems; `tracing.systems.conformance` puts them together."""
