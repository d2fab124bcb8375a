"""Mem0 0.1, 1.0 and 2: the real library, traced by hooks on the instance; its exporter, proof and recorder."""
