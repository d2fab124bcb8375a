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


def rerun_difference(
    spec: PromptSpec, parts: Parts, outputs: Sequence[Item], graph: ExecutionGraph, *, repeatable: bool
) -> str | None:
    """What a rerun with the recorded prompt did otherwise than the recording, in one line; None if nothing.

    Args:
        spec: the prompt whose operation ran again.
        parts, outputs: the recorded execution's inputs by placeholder, and what it made.
        graph: recorded of the rerun.
        repeatable: whether equal requests get equal replies, as from a cache. Otherwise what was read is compared, and
            so it is of an operation whose calls memtune does not see.
    """
    executions = graph.find_operations(name=spec.operation)
    if len(executions) != 1:
        return f"rerun of {spec.name} recorded {len(executions)} executions of {spec.operation}, not 1"
    (again,) = executions
    if repeatable and again.calls:
        before, after = _texts(outputs), _texts(recorded_outputs(again, graph))
        what, whence = "made", "of what gave"
    else:
        before = [f"{name}: {text}" for name, items in sorted(parts.items()) for text in _texts(items)]
        read = recorded_parts(spec.layout, spec.contract.placeholders, again, graph)
        after = [f"{name}: {text}" for name, items in sorted(read.items()) for text in _texts(items)]
        what, whence = "read", "where the recorded one read"
    if before == after:
        return None
    return f"rerun of {spec.name} {what} {_shown(after)} {whence} {_shown(before)}"


def _texts(items: Sequence[Item]) -> list[str]:
    return [item.text for item in items]


def _shown(texts: Sequence[str]) -> str:
    return excerpt(repr("\n".join(texts)), _LONGEST) if texts else "nothing"
