"""The context length of an embedded model that nobody gave one, apart from what takes long to import."""

DEFAULT_CONTEXT = 4096
"""Tokens."""
