"""Events of an execution graph: of our recorder, of a trace file, or of OpenTelemetry spans that were imported.

An operation of kind `tool` becomes a tool call, one of kind `decision` a decision, any other a step. What was said is
taken from variables of kind `message`, once each, however many calls were given it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracing.files.depth import structured
from tracing.graph.elements import Link, Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import first_of
from tracing.interchange.spans import digest
from tracing.trace_memory.events import Event

_TOOL_NAMES = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
_ARGUMENTS = ("gen_ai.tool.call.arguments",)
_RESULT = ("gen_ai.tool.call.result",)
_AGENT = ("gen_ai.agent.name", "gen_ai.agent.id")
_ONE_RESULT = ("result", "output", "return", "value")
_MODEL_CALLS = ("llm", "embedding")


def events_of_graph(graph: ExecutionGraph) -> list[Event]:
    """The events of a graph in the order of their times; an operation that is still open is left out."""
    return sorted([*_message_events(graph), *_operation_events(graph)], key=lambda event: event.time)


def _operation_events(graph: ExecutionGraph) -> Iterable[Event]:
    for operation in graph.operations.values():
        if operation.status == "open":
            continue
        started = operation.started or 0.0
        session = _session_name(graph, operation.session)
        event = digest("operation", operation.id, operation.name, repr(started), session)
        facts: dict[str, Any] = {"status": operation.status}
        if operation.ended is not None:
            facts["seconds"] = round(max(operation.ended - started, 0.0), 6)
        agent = first_of(operation.attributes, _AGENT)
        if agent is not None:
            facts["agent"] = str(agent)
        value = operation.error if operation.status == "error" else _operation_value(graph, operation)
        kind, key = "step", operation.name
        if operation.kind == "tool":
            kind, key = "tool_call", str(first_of(operation.attributes, _TOOL_NAMES) or operation.name)
            arguments = structured(first_of(operation.attributes, _ARGUMENTS))
            facts["arguments"] = arguments if isinstance(arguments, Mapping) else _values(graph, operation.inputs)
        elif operation.kind == "decision":
            kind = "decision"
            facts |= {
                name: operation.attributes[name] for name in ("confidence", "reason") if name in operation.attributes
            }
        yield Event(event, kind, key, value, facts, started, session=session)


def _operation_value(graph: ExecutionGraph, operation: Operation) -> Any:
    """What an operation made, without messages, which are events of their own."""
    result = structured(first_of(operation.attributes, _RESULT)) if operation.kind == "tool" else None
    if result is not None:
        return result
    if operation.kind in _MODEL_CALLS:
        return None
    values = _values(graph, operation.outputs)
    if len(values) == 1 and (operation.kind in ("tool", "decision") or next(iter(values)) in _ONE_RESULT):
        return next(iter(values.values()))
    return values or None


def _values(graph: ExecutionGraph, links: Iterable[Link]) -> dict[str, Any]:
    """Values by role; those of a role that repeats are a list."""
    by_role: dict[str, list[Any]] = {}
    for role, vid in links:
        variable = graph.variables[vid]
        if variable.kind not in ("message", "prompt"):
            by_role.setdefault(role, []).append(variable.value)
    return {role: role_values[0] if len(role_values) == 1 else role_values for role, role_values in by_role.items()}


def _message_events(graph: ExecutionGraph) -> Iterable[Event]:
    times: dict[str, float] = {}
    for operation in graph.operations.values():
        for _, vid in (*operation.inputs, *operation.outputs):
            times.setdefault(vid, operation.started or 0.0)
    ids: set[str] = set()
    for variable in graph.variables.values():
        if variable.kind != "message" or not isinstance(variable.value, str) or not variable.value:
            continue
        session = _session_name(graph, variable.session)
        event = digest("message", session, variable.name, variable.value)
        if event not in ids:
            ids.add(event)
            yield Event(
                event, "message", variable.name, variable.value, {}, times.get(variable.id, 0.0), session=session
            )


def _session_name(graph: ExecutionGraph, sid: str | None) -> str:
    return graph.sessions[sid].name if sid is not None and sid in graph.sessions else ""
