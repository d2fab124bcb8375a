"""Benchmarks that make their own truth."""
