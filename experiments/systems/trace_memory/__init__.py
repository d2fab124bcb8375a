"""Trace memory as a memory system: an agent's turns as events, what they taught as statements, answers from both."""

from experiments.systems.trace_memory.system import TraceMemorySystem

__all__ = ["TraceMemorySystem"]
