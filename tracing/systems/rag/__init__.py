"""Retrieval-augmented generation over the raw conversation."""

from tracing.systems.rag.system import Rag

__all__ = ["Rag"]
