"""Benchmarks: what memtune costs beside the tools people would use otherwise, and how often it is right."""
