"""What a variable or an operation is, where it came from, where it went, and how its versions differ."""

from __future__ import annotations

from typing import Any

from experiments.display.terminal import visible
from experiments.reports.run_report import diff
from tracing.errors import TraceError
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.search import shown_text
from tracing.recording.redaction import redact

LONGEST_VALUE, MOST_LISTED, BRIEF = 20_000, 100, 160
_LONGEST_COMPARED = 4_000


def element(graph: ExecutionGraph, element_id: str) -> dict[str, Any]:
    """A variable or operation by its id, with its neighbours, as JSON.

    Raises:
        TraceError: the graph has none of this id.
    """
    if element_id in graph.operations:
        return _operation(graph, graph.operations[element_id])
    if element_id in graph.variables:
        return _variable(graph, graph.variables[element_id])
    raise TraceError(f"{element_id!r}: is not a variable or operation of this graph")


def brief(graph: ExecutionGraph, element_id: str) -> dict[str, Any]:
    """An element in a line."""
    operation = graph.operations.get(element_id)
    if operation is not None:
        return {"id": element_id, "what": "operation", "name": operation.name, "text": _where(graph, operation.session)}
    variable = graph.variables[element_id]
    text = " ".join(safe(shown_text(variable.value), BRIEF).split())
    name = variable.name if variable.version == 1 else f"{variable.name} (version {variable.version})"
    return {"id": element_id, "what": "variable", "kind": variable.kind, "name": safe(name, BRIEF), "text": text}


def safe(text: str, longest: int = LONGEST_VALUE) -> str:
    """A text as a page shows it: without credentials or characters that hide or reorder others."""
    text = redact(text)
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest:,} more characters)"
    return visible(cut)


def _variable(graph: ExecutionGraph, variable: Variable) -> dict[str, Any]:
    versions = graph.versions(variable.id)
    messages = [
        source.id for source in graph.backward_slice(variable.id).variables.values() if source.kind == "message"
    ]
    onward = graph.forward_slice(variable.id)
    return {
        **brief(graph, variable.id),
        "value": safe(shown_text(variable.value)),
        "session": _where(graph, variable.session),
        "made_by": [brief(graph, neighbour.id) for neighbour in graph.producers(variable.id)[:MOST_LISTED]],
        "read_by": [brief(graph, neighbour.id) for neighbour in graph.consumers(variable.id)[:MOST_LISTED]],
        "versions": [_version(before, version) for before, version in zip([None, *versions], versions, strict=False)],
        "messages": [brief(graph, message_id) for message_id in messages[:MOST_LISTED]],
        "messages_count": len(messages),
        "onward": {"operations": len(onward.operations), "variables": len(onward.variables) - 1},
    }


def _version(before: Variable | None, variable: Variable) -> dict[str, Any]:
    """A version, with what changed since the one before: lines of (kind, [[text, changed], …])."""
    text = safe(shown_text(variable.value), _LONGEST_COMPARED)
    deleted = variable.kind == "delete_marker"
    lines: list[Any] = []
    if before is not None and not deleted:
        old = safe(shown_text(before.value), _LONGEST_COMPARED)
        lines = [[line.kind, line.parts, line.fold] for line in diff(old, text)]
    return {"id": variable.id, "version": variable.version, "deleted": deleted, "text": text, "difference": lines}


def _operation(graph: ExecutionGraph, operation: Operation) -> dict[str, Any]:
    facts = {
        "status": operation.status,
        "seconds": round(operation.ended - operation.started, 3) if operation.ended is not None else None,
        "model": operation.model,
        "calls": operation.calls,
        "prompt tokens": operation.prompt_tokens,
        "completion tokens": operation.completion_tokens,
        "error": safe(operation.error) if operation.error else None,
    }
    return {
        **brief(graph, operation.id),
        "session": _where(graph, operation.session),
        "facts": {key: value for key, value in facts.items() if value not in (None, 0, "")},
        "inputs": [{"role": role, **brief(graph, vid)} for role, vid in operation.inputs[:MOST_LISTED]],
        "outputs": [{"role": role, **brief(graph, vid)} for role, vid in operation.outputs[:MOST_LISTED]],
        "inputs_count": len(operation.inputs),
        "outputs_count": len(operation.outputs),
    }


def _where(graph: ExecutionGraph, session: str | None) -> str:
    shared_session = graph.sessions.get(session or "")
    return safe(shared_session.name, BRIEF) if shared_session is not None else ""
