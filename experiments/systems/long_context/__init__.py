"""The whole conversation as context, as much of its end as fits."""

from experiments.systems.long_context.system import LongContext

__all__ = ["LongContext"]
