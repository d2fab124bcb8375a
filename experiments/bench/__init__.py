"""Benchmarks: what memtune costs beside the tools people would use otherwise, and how often its blame is right."""
