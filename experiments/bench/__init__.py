"""Benchmarks of memtune against the tools people would use otherwise, measured in one run on one machine."""
