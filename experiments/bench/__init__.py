"""Benchmarks: what memtune costs compared with other tools, and how often its blame is right."""
