"""A small in-process memory system: extract facts, keep them current, retrieve, answer."""

from experiments.systems.fact_memory.system import FactMemory

__all__ = ["FactMemory"]
