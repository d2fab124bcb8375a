"""Benchmarks: against the tools people would use otherwise, and against a truth that is made for it."""
