"""Mem0 1.0.x: the real library, traced through hooks on the instance, with its models behind the gateway."""

from tracing.systems.mem0_memory.system import Mem0

__all__ = ["Mem0"]
