"""Retrieval-augmented generation over the raw conversation."""

from experiments.systems.rag.system import Rag

__all__ = ["Rag"]
