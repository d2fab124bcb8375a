"""What recorded values are: which kinds are content of a memory, and what a decision about one says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracing.graph.elements import Variable

CONTENT = frozenset(("fact", "memory_entry", "delete_marker", "context", "prediction"))


def event_of(outputs: Sequence[Variable]) -> tuple[str, str | None] | None:
    """The event (ADD, UPDATE, DELETE, NONE) and the target of a decision among an operation's outputs."""
    for variable in outputs:
        value: Any = variable.value
        if isinstance(value, Mapping) and isinstance(value.get("event"), str):
            target = value.get("target")
            return value["event"].upper(), None if target is None else str(target)
    return None
