"""Failures of the real Mem0 that are certain by construction, and whether attribution names the step at fault."""
