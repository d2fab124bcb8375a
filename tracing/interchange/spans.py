"""Spans between execution graphs and the tools that speak of traces as trees of spans (OpenTelemetry, MLflow).

Outward, the graph is a root span, below it one for each session, below these the operations, outer over inner. A
variable is an event on the span of the operation that first made it, or of its session. Each carries its own record,
so that the way back loses nothing; what others can read stands beside it under OpenTelemetry's names for generative AI.

Inward, a span of ours gives back what it came from, and any other becomes an operation (`tracing.interchange.foreign`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tracing.errors import TraceError
from tracing.files.depth import DEEPEST_LINE, loads
from tracing.files.lines import GRAPH, Record, record_of
from tracing.files.nesting import outer_operations
from tracing.files.records import RecordReader
from tracing.graph.elements import Link, Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import FreeIds, Troubles
from tracing.interchange.foreign import operation_of

RECORD = "memtune.record"
"""Attribute of a span or event: the JSON of what it came from."""
PLACE = "memtune.place"
"""Attribute beside RECORD: where that stood among its kind in the graph."""
VARIABLE = "memtune.variable"
"""Name of the event that a variable is."""

_OPERATION_NAMES = {"llm": "chat", "embedding": "embeddings", "retrieval": "retrieval", "tool": "execute_tool"}
_LAST_NANOSECOND = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at one moment of a span."""

    name: str
    time: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Span:
    """A span, apart from how a tool writes it down.

    Attributes:
        id: unique in its trace; 16 hexadecimal digits in spans of ours.
        parent: id of the span around it, None for a root.
        start: nanoseconds since the epoch.
        end: likewise; None where it never ended.
        kind: kind of the operation; "graph" and "session" for the spans around operations.
        ok: True if it went well, False if not, None where nobody said.
        error: what went wrong.
        attributes: JSON-compatible.
        origin: what an importer keeps of the tool's own, such as the trace's id and the resource.
    """

    id: str
    parent: str | None
    name: str
    start: int
    end: int | None
    kind: str = "function"
    ok: bool | None = None
    error: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    origin: dict[str, Any] = field(default_factory=dict)


def digest(*parts: str, digits: int = 16) -> str:
    """A hexadecimal id that depends on nothing but what it is for."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def trace_id_of(spans: Iterable[Span]) -> str:
    """32 hexadecimal digits that depend on nothing but what the spans of a graph record."""
    return digest(*(span.attributes[RECORD] for span in spans), digits=32)


def spans_of(graph: ExecutionGraph) -> list[Span]:
    """The spans of a graph, each after its parent."""
    begun = min((nanoseconds(one.started) for one in graph.operations.values()), default=0)
    over = max((_end(one) for one in graph.operations.values()), default=begun)
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
            min((nanoseconds(one.started) for one in within), default=begun),
            max((_end(one) for one in within), default=begun),
            "session",
            True,
            attributes={"gen_ai.conversation.id": session.name, RECORD: json.dumps(record_of(session)), PLACE: place},
        )
    operations = {}
    outer = outer_operations(graph)  # spans are a tree, also where a damaged trace is none
    for place, operation in enumerate(graph.operations.values()):
        span = _operation_span(graph, operation)
        span.attributes |= {RECORD: json.dumps(record_of(operation)), PLACE: place}
        around = sessions.get(operation.session or "") or root
        span.parent = digest("operation", outer[operation.id]) if operation.id in outer else around.id
        operations[operation.id] = span
    for place, variable in enumerate(graph.variables.values()):
        made = next(iter(graph.producers(variable.id)), None)
        where = operations[made.id] if made is not None else sessions.get(variable.session or "") or root
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
    said = []
    for _, vid in links:
        variable = graph.variables[vid]
        content = variable.value if isinstance(variable.value, str) else json.dumps(variable.value)
        speaker = "system" if variable.kind == "prompt" else role
        said.append({"role": speaker, "parts": [{"type": "text", "content": content}]})
    return json.dumps(said)


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


def nanoseconds(seconds: float) -> int:
    """A moment in epoch nanoseconds, as far as 63 bits hold it; exact to the microsecond."""
    # Clipped first: what is multiplied may be the largest of numbers.
    return min(int(min(max(seconds, 0.0), _LAST_NANOSECOND / 1e9) * 1e6) * 1000, _LAST_NANOSECOND)


def _end(operation: Operation) -> int:
    start = nanoseconds(operation.started)
    return start if operation.ended is None else max(start, nanoseconds(operation.ended))


def _outer_first(spans: Mapping[str, Span]) -> Iterator[Span]:
    """An outer operation may have been recorded after the inner ones; a span's parent comes before it."""
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
    """The graph that spans tell of; those that memtune did not write become operations.

    Args:
        spans: of one or more traces, in any order.
        troubles: is told what had to be repaired or left out.
    """
    records: dict[str, list[tuple[int, int, Record, Span]]] = {}
    foreign: list[Span] = []
    number = count()
    for span in spans:
        own = _record(span.attributes, troubles, span)
        if own is None:
            foreign.append(span)
        for facts in (own, *(_record(one.attributes, troubles, span) for one in span.events if one.name == VARIABLE)):
            if facts is not None:
                place = facts.pop(PLACE)
                records.setdefault(str(facts.get("type")), []).append((place, next(number), facts, span))
    graph = ExecutionGraph()
    add = RecordReader(graph).add
    for kind in (GRAPH, "session", "variable", "operation"):
        for _, _, record, span in sorted(records.pop(kind, ()), key=lambda one: one[:2]):
            try:
                add(record)
            except TraceError as error:
                troubles.add(f"holds what cannot be taken as memtune wrote it: {error}", f"span {span.id!r}")
    for kind, others in records.items():
        troubles.add(f"holds a record of the unknown type {kind!r}", f"span {others[0][3].id!r}")
    known: dict[str, str] = {}
    ids = FreeIds()
    for span in sorted(foreign, key=lambda one: one.start):
        operation_of(span, graph, known, ids, troubles)
    _name_parents(graph, foreign, known)
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
        troubles.add(f"has an attribute {RECORD} that is no JSON object", f"span {span.id!r}")
        return None
    place = attributes.get(PLACE)
    return {**record, PLACE: place if isinstance(place, int) else 0}


def _name_parents(graph: ExecutionGraph, foreign: Iterable[Span], known: Mapping[str, str]) -> None:
    """Parents by the ids of their operations, now that all of them have one."""
    own = {digest("operation", oid): oid for oid in graph.operations}
    for span in foreign:
        operation = graph.operations[known[f"{span.origin.get('trace_id')}/{span.id}"]]
        around = known.get(f"{span.origin.get('trace_id')}/{span.parent}") or own.get(span.parent or "")
        operation.parent = around if around != operation.id else None
