"""The spans of an execution graph, and the execution graph of spans.

The graph is the root span; its children are a span for each session, and theirs the operations, nested as they ran. A
variable is an event on the span of the operation that first made it, or of its session. Each carries its own record;
beside it, data for other tools has OpenTelemetry's names for generative AI. A span of ours is restored from its record;
any other becomes an operation (`tracing.interchange.foreign_spans`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from tracing.errors import TraceError
from tracing.files.depth import DEEPEST_LINE, loads
from tracing.files.records import RecordReader
from tracing.files.trace_lines import GRAPH, Record, record_of
from tracing.graph.elements import Link, Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.neighbours import outer_operations
from tracing.interchange.documents import FreeIds, Troubles
from tracing.interchange.foreign_spans import operation_of
from tracing.interchange.spans import PLACE, RECORD, VARIABLE, Event, Span, digest, nanoseconds

_OPERATION_NAMES = {"llm": "chat", "embedding": "embeddings", "retrieval": "retrieval", "tool": "execute_tool"}


def spans_of(graph: ExecutionGraph) -> list[Span]:
    """The spans of a graph, each after its parent."""
    begun = min((nanoseconds(operation.started) for operation in graph.operations.values()), default=0)
    over = max((_end(operation) for operation in graph.operations.values()), default=begun)
    about = json.dumps({"type": GRAPH, "attributes": graph.attributes})
    root = Span(digest("graph"), None, "memtune", begun, over, "graph", True, attributes={RECORD: about})
    inside: dict[str | None, list[Operation]] = {}
    for operation in graph.operations.values():
        inside.setdefault(operation.session, []).append(operation)
    sessions = {}
    for place, session in enumerate(graph.sessions.values()):
        within = inside.get(session.id, ())
        sessions[session.id] = Span(
            digest("session", session.id),
            root.id,
            session.name,
            min((nanoseconds(operation.started) for operation in within), default=begun),
            max((_end(operation) for operation in within), default=begun),
            "session",
            True,
            attributes={"gen_ai.conversation.id": session.name, RECORD: json.dumps(record_of(session)), PLACE: place},
        )
    operations = {}
    outer = outer_operations(graph.operations)  # spans must be a tree, even if a damaged trace is not
    for place, operation in enumerate(graph.operations.values()):
        span = _operation_span(graph, operation)
        span.attributes |= {RECORD: json.dumps(record_of(operation)), PLACE: place}
        around = sessions.get(operation.session or "") or root
        span.parent = digest("operation", outer[operation.id]) if operation.id in outer else around.id
        operations[operation.id] = span
    for place, variable in enumerate(graph.variables.values()):
        maker = next(iter(graph.producers(variable.id)), None)
        where = operations[maker.id] if maker is not None else sessions.get(variable.session or "") or root
        where.events.append(_variable_event(variable, place, where))
    return [root, *sessions.values(), *_outer_first(operations)]


def _operation_span(graph: ExecutionGraph, operation: Operation) -> Span:
    failed = operation.status == "error"
    facts: dict[str, Any] = {"gen_ai.operation.name": _OPERATION_NAMES.get(operation.kind)}
    if operation.model:
        facts["gen_ai.request.model"] = operation.model
    if operation.calls:
        facts["gen_ai.usage.input_tokens"] = operation.prompt_tokens
        facts["gen_ai.usage.output_tokens"] = operation.completion_tokens
        facts["memtune.calls"] = operation.calls
        facts["memtune.cost"] = operation.cost
    if operation.kind == "llm":
        facts["gen_ai.input.messages"] = _messages(graph, operation.inputs, "user")
        facts["gen_ai.output.messages"] = _messages(graph, operation.outputs, "assistant")
    if operation.session in graph.sessions:
        facts["gen_ai.conversation.id"] = graph.sessions[operation.session].name
    if failed:
        facts["error.type"] = (operation.error or "error").partition(":")[0]
    return Span(
        digest("operation", operation.id),
        None,
        operation.name,
        nanoseconds(operation.started),
        _end(operation) if operation.ended is not None else None,
        operation.kind,
        {"ok": True, "error": False}.get(operation.status),
        operation.error if failed else None,
        {name: fact for name, fact in facts.items() if fact is not None},
    )


def _messages(graph: ExecutionGraph, links: Sequence[Link], role: str) -> str:
    messages = []
    for _, vid in links:
        variable = graph.variables[vid]
        content = variable.value if isinstance(variable.value, str) else json.dumps(variable.value)
        speaker = "system" if variable.kind == "prompt" else role
        messages.append({"role": speaker, "parts": [{"type": "text", "content": content}]})
    return json.dumps(messages)


def _variable_event(variable: Variable, place: int, span: Span) -> Event:
    return Event(
        VARIABLE,
        span.start if span.end is None else span.end,
        {
            "memtune.variable.name": variable.name,
            "memtune.variable.kind": variable.kind,
            RECORD: json.dumps(record_of(variable)),
            PLACE: place,
        },
    )


def _end(operation: Operation) -> int:
    start = nanoseconds(operation.started)
    return start if operation.ended is None else max(start, nanoseconds(operation.ended))


def _outer_first(spans: Mapping[str, Span]) -> Iterator[Span]:
    """Spans with parents first: an outer operation may have been recorded after the inner ones."""
    inside: dict[str | None, list[Span]] = {}
    own = {span.id for span in spans.values()}
    for span in spans.values():
        inside.setdefault(span.parent if span.parent in own else None, []).append(span)
    waiting = list(reversed(inside.get(None, [])))
    while waiting:
        span = waiting.pop()
        yield span
        waiting += reversed(inside.get(span.id, []))


def graph_of_spans(spans: Iterable[Span], troubles: Troubles) -> ExecutionGraph:
    """The graph that spans of any traces describe; those that memtune did not write become operations."""
    records: dict[str, list[tuple[int, int, Record, Span]]] = {}
    foreign: list[Span] = []
    number = count()
    for span in spans:
        own = _record(span.attributes, troubles, span)
        if own is None:
            foreign.append(span)
        for facts in (
            own,
            *(_record(event.attributes, troubles, span) for event in span.events if event.name == VARIABLE),
        ):
            if facts is not None:
                place = facts.pop(PLACE)
                records.setdefault(str(facts.get("type")), []).append((place, next(number), facts, span))
    graph = ExecutionGraph()
    add = RecordReader(graph).add
    for kind in (GRAPH, "session", "variable", "operation"):
        for _, _, record, span in sorted(records.pop(kind, ()), key=lambda entry: entry[:2]):
            try:
                add(record)
            except TraceError as error:
                troubles.add(f"has a record that cannot be taken as memtune wrote it: {error}", f"span {span.id!r}")
    for kind, others in records.items():
        troubles.add(f"has a record of the unknown type {kind!r}", f"span {others[0][3].id!r}")
    operation_ids: dict[str, str] = {}
    ids = FreeIds()
    for span in sorted(foreign, key=lambda candidate: candidate.start):
        operation_of(span, graph, operation_ids, ids, troubles)
    _name_parents(graph, foreign, operation_ids)
    return graph


def _record(attributes: Mapping[str, Any], troubles: Troubles, span: Span) -> Record | None:
    text = attributes.get(RECORD)
    if text is None:
        return None
    try:
        record = text if isinstance(text, dict) else loads(text, DEEPEST_LINE)  # a store of MLflow parses it
    except (TypeError, ValueError, AttributeError):
        record = None
    if not isinstance(record, dict):
        troubles.add(f"has an attribute {RECORD} that is not a JSON object", f"span {span.id!r}")
        return None
    place = attributes.get(PLACE)
    return {**record, PLACE: place if isinstance(place, int) else 0}


def _name_parents(graph: ExecutionGraph, foreign: Iterable[Span], operation_ids: Mapping[str, str]) -> None:
    """Set the parents of operations, now that all operations have ids."""
    own = {digest("operation", oid): oid for oid in graph.operations}
    for span in foreign:
        operation = graph.operations[operation_ids[f"{span.origin.get('trace_id')}/{span.id}"]]
        around = operation_ids.get(f"{span.origin.get('trace_id')}/{span.parent}") or own.get(span.parent or "")
        operation.parent = around if around != operation.id else None
