"""Graphiti: how prompts get into it, and the proof that it sends them."""
