"""Benchmarks: how good memtune's attribution, matchers, optimizers, gates and memories are, and what its parts cost."""
