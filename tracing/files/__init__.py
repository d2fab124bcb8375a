"""Trace files: append-only JSON lines, written so that they survive a kill, and read back as far as they are sound."""
