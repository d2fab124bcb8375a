"""Import and export of OpenTelemetry's OTLP in JSON: a file of one document, a list of them, or one a line.

Import takes protobuf too.

Each line of the collector's file exporter is a document. Names may be in lower camel case, as the protocol says, or in
snake case, as some tools write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from tracing.files.file_kinds import OTLP, kind_of
from tracing.files.opening import read_file
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import Imported, Troubles, mapping, require_room, text_or_none, to_json, write_pieces
from tracing.interchange.otlp_protobuf import documents_in_protobuf
from tracing.interchange.span_files import documents_in_file, read_spans, rows_at, span_of, value_at
from tracing.interchange.span_graphs import spans_of
from tracing.interchange.spans import Span, trace_id_of

_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2
_LARGEST = 2**63 - 1
_TRACE_ID = b"\n\x10"
"""Begins a span's field in protobuf; no JSON has this character."""


def load(path: Path) -> ExecutionGraph:
    """The graph in a file of OTLP; `read` also reports repairs, and raises the same."""
    return read(path).graph


def read(path: Path) -> Imported:
    """The graph in a file of OTLP, in JSON or protobuf, and what was repaired or left out.

    Raises:
        TraceError: the file cannot be read, or has no spans; or it is in protobuf, and opentelemetry-proto is missing.
    """
    missing = "its resourceSpans, scopeSpans or spans are missing"
    return read_spans(path, OTLP, "OTLP spans", missing, _spans, documents_of=_documents)


def write(graph: ExecutionGraph, path: Path) -> None:
    """Write a graph as a new file of OTLP JSON, one document in one line; raises as `Format.write` does."""
    write_pieces(path, (to_json(document_of(graph)), "\n"))


# --- out -----------------------------------------------------------------------------------------------------------


def document_of(graph: ExecutionGraph) -> dict[str, Any]:
    """The graph as one OTLP document, the body of a request to `/v1/traces`.

    Raises:
        TraceError: its values are too long for one document.
    """
    model_calls = (operation for operation in graph.operations.values() if operation.kind == "llm")
    require_room(graph, (link for call in model_calls for link in chain(call.inputs, call.outputs)))
    spans = spans_of(graph)
    trace = trace_id_of(spans)
    scope = {"scope": {"name": "memtune"}, "spans": [_written(span, trace) for span in spans]}
    resource = {"attributes": _attributes({"service.name": "memtune"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _written(span: Span, trace: str) -> dict[str, Any]:
    status: dict[str, Any] = {}
    if span.ok is not None:
        status = {"code": _OK if span.ok else _ERROR} | ({"message": span.error} if span.error else {})
    return {
        "traceId": trace,
        "spanId": span.id,
        "parentSpanId": span.parent or "",
        "name": span.name,
        "kind": _CLIENT if span.kind == "llm" else _INTERNAL,
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end or 0),
        "attributes": _attributes(span.attributes),
        "events": [
            {"timeUnixNano": str(event.time), "name": event.name, "attributes": _attributes(event.attributes)}
            for event in span.events
        ],
        "status": status,
    }


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(value)} for key, value in facts.items()]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and abs(value) <= _LARGEST:
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


# --- in ------------------------------------------------------------------------------------------------------------


def _documents(path: Path, troubles: Troubles) -> list[tuple[str, Any]]:
    kind = kind_of(path)
    if kind is not None and kind.name == OTLP and _TRACE_ID in (content := read_file(path)):
        return documents_in_protobuf(path, content, troubles)
    return documents_in_file(path, troubles)


def _spans(where: str, document: Any, troubles: Troubles) -> Iterator[Span]:
    for place, group in rows_at(document, where, "resourceSpans", troubles):
        resource = _facts(value_at(mapping(value_at(group, "resource")), "attributes"))
        scoped = [*rows_at(group, place, "scopeSpans", troubles)]
        scoped += rows_at(group, place, "instrumentationLibrarySpans", troubles)
        for inner, scope in scoped:
            names = [mapping(value_at(scope, key)).get("name") for key in ("scope", "instrumentationLibrary")]
            name = next(filter(None, names), None)
            about = {"resource": resource} | ({"scope": name} if isinstance(name, str) else {})
            for path, row in rows_at(scope, inner, "spans", troubles):
                trace = text_or_none(value_at(row, "traceId")) or ""
                more = {key: value for key in _ORIGIN_KEYS if (value := value_at(row, key))}
                origin = {"trace_id": trace, **about, **more}
                yield span_of(row, path, origin, troubles, attributes_of=_facts)


_ORIGIN_KEYS = ("kind", "links", "traceState", "flags")
"""Keys of a span that belong to its origin."""


def _facts(rows: Any) -> dict[str, Any]:
    """Attributes as an object; anything that is not in OTLP's form is ignored."""
    if not isinstance(rows, list):
        return {}
    return {
        row["key"]: _plain(row.get("value"))
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("key"), str)
    }


def _plain(value: Any) -> Any:
    """An AnyValue as JSON; the depth of documents bounds the recursion."""
    if not isinstance(value, dict):
        return value
    for key in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if (scalar := value_at(value, key)) is not None:
            return scalar
    if (number := value_at(value, "intValue")) is not None:
        try:
            return int(number) if isinstance(number, str) and len(number) < 32 else number
        except ValueError:
            return number
    if (listed := value_at(value, "arrayValue")) is not None:
        rows = mapping(listed).get("values")
        return [_plain(row) for row in rows] if isinstance(rows, list) else []
    if (keyed := value_at(value, "kvlistValue")) is not None:
        return _facts(mapping(keyed).get("values"))
    return None
