"""Whether a system's `rerun` does again what was recorded of an operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracing.recording.redaction import excerpt
from tracing.systems.layouts import Item, Parts, recorded_outputs, recorded_parts

if TYPE_CHECKING:
    from tracing.graph.execution_graph import ExecutionGraph
    from tracing.systems.prompts import PromptSpec

_LONGEST = 160


def sees_calls(spec: PromptSpec, graph: ExecutionGraph) -> bool:
    """Whether the calls of a prompt's operation were recorded, as those through the access are."""
    return any(execution.calls for execution in graph.find_operations(name=spec.operation))


def rerun_difference(
    spec: PromptSpec, parts: Parts, outputs: Sequence[Item], graph: ExecutionGraph, *, repeatable: bool
) -> str | None:
    """What a rerun with the recorded prompt did otherwise than the recording, in one line; None if nothing.

    Args:
        spec: the prompt whose operation ran again.
        parts, outputs: the recorded execution's inputs by placeholder, and what it made.
        graph: recorded of the rerun.
        repeatable: whether equal requests get equal replies, as from a cache; what was made is compared then, and
            otherwise what was read, in any order.
    """
    executions = graph.find_operations(name=spec.operation)
    if len(executions) != 1:
        return f"rerun of {spec.name} recorded {len(executions)} executions of {spec.operation}, not 1"
    (again,) = executions
    if repeatable:
        before, after = _texts(outputs), _texts(recorded_outputs(again, graph))
        what, whence = "made", "of what gave"
    else:
        read = recorded_parts(spec.layout, spec.contract.placeholders, again, graph)
        before, after = _lines(parts), _lines(read)
        what, whence = "read", "where the recorded one read"
    if before == after:
        return None
    return f"rerun of {spec.name} {what} {_quoted(after)} {whence} {_quoted(before)}"


def _lines(parts: Parts) -> list[str]:
    return sorted(f"{name}: {text}" for name, items in parts.items() for text in _texts(items))


def _texts(items: Sequence[Item]) -> list[str]:
    return [item.text for item in items]


def _quoted(texts: Sequence[str]) -> str:
    return excerpt(repr("\n".join(texts)), _LONGEST) if texts else "nothing"
