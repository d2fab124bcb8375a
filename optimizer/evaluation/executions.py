"""One recorded execution of a prompt's operation: what filled the prompt's placeholders, and what was made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracing.systems.layouts import Item, Parts

if TYPE_CHECKING:
    from tracing.graph.execution_graph import ExecutionGraph, Operation, Variable
    from tracing.systems.prompts import PromptSpec

_NO_DATA = ("prompt", "request")
"""Kinds of inputs that fill no placeholder: the template, and what `tracing.instrument` keeps of a request."""


def parts_of(prompt: PromptSpec, execution: Operation, graph: ExecutionGraph) -> Parts:
    """Placeholder → the recorded inputs that filled it in an execution of the prompt's operation."""
    parts: dict[str, tuple[Item, ...]] = {}
    for role, vid in execution.inputs:
        item = _item(role, graph.variables[vid])
        if item.kind not in _NO_DATA:
            name = prompt.layout.placeholder(role)
            parts[name] = (*parts.get(name, ()), item)
    return parts


def outputs_of(execution: Operation, graph: ExecutionGraph) -> tuple[Item, ...]:
    """What an execution made."""
    return tuple(_item(role, graph.variables[vid]) for role, vid in execution.outputs)


def _item(role: str, variable: Variable) -> Item:
    return Item(role, variable.name, variable.kind, variable.value)
