"""Import and export of OpenTelemetry's OTLP in JSON: a file of one document, a list of them, or one a line.

Each line of the collector's file exporter is a document. Names may be in lower camel case, as the protocol says, or in
snake case, as some tools write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from tracing.errors import TraceError
from tracing.files.file_kinds import OTLP, likeness
from tracing.files.loading import collector_paused
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import (
    Imported,
    Troubles,
    documents_in,
    mapping,
    moment_in,
    read_bytes,
    require_room,
    text_or_none,
    to_json,
    write_text,
)
from tracing.interchange.span_graphs import graph_of_spans, spans_of
from tracing.interchange.spans import Event, Span, trace_id_of

__all__ = ["document_of", "load", "read", "write"]

_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2
_CODES: Mapping[Any, bool | None] = {1: True, "STATUS_CODE_OK": True, 2: False, "STATUS_CODE_ERROR": False}
_LARGEST = 2**63 - 1


def load(path: Path) -> ExecutionGraph:
    """The graph in a file of OTLP JSON; `read` also reports repairs.

    Raises:
        TraceError: the file cannot be read, or has no spans.
    """
    return read(path).graph


def read(path: Path) -> Imported:
    """The graph in a file of OTLP JSON, and what was repaired or left out.

    Raises:
        TraceError: the file cannot be read, or has no spans.
    """
    troubles = Troubles()
    with collector_paused():
        documents = documents_in(path, read_bytes(path), troubles)
        spans = [span for where, document in documents for span in _spans(where, document, troubles)]
        if not spans:
            looks = likeness(path, OTLP) or "its resourceSpans, scopeSpans or spans are missing"
            raise TraceError(f"{path}: holds no OTLP spans; {looks}")
        graph = graph_of_spans(spans, troubles)
    return Imported(graph, troubles.lines())


def write(graph: ExecutionGraph, path: Path) -> None:
    """Write a graph as a new file of OTLP JSON, one document in one line.

    Raises:
        TraceError: the file exists, or cannot be written.
    """
    write_text(path, to_json(document_of(graph)) + "\n")


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


def _spans(where: str, document: Any, troubles: Troubles) -> Iterator[Span]:
    for place, group in _rows(document, where, "resourceSpans", troubles):
        resource = _facts(_get(mapping(_get(group, "resource")), "attributes"))
        scoped = [*_rows(group, place, "scopeSpans", troubles)]
        scoped += _rows(group, place, "instrumentationLibrarySpans", troubles)
        for inner, scope in scoped:
            name = mapping(_get(scope, "scope")).get("name") or mapping(_get(scope, "instrumentationLibrary")).get(
                "name"
            )
            origin = {"resource": resource} | ({"scope": name} if isinstance(name, str) else {})
            for at, row in _rows(scope, inner, "spans", troubles):
                yield _read_span(row, at, origin, troubles)


def _rows(holder: Any, where: str, key: str, troubles: Troubles) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a list under a key, each with the key path to it."""
    rows = _get(mapping(holder), key)
    path = f"{where}.{key}".lstrip(".")
    if rows is None:
        return
    if not isinstance(rows, list):
        troubles.add("is not a list and was left out", path)
        return
    for number, row in enumerate(rows):
        if isinstance(row, dict):
            yield f"{path}[{number}]", row
        else:
            troubles.add("is not an object and was left out", f"{path}[{number}]")


def _read_span(row: Mapping[str, Any], path: str, origin: Mapping[str, Any], troubles: Troubles) -> Span:
    sid = text_or_none(_get(row, "spanId"))
    if sid is None:
        troubles.add("is missing or no text; one was made up", f"{path}.spanId")
    status = mapping(_get(row, "status"))
    more = {key: _get(row, key) for key in ("kind", "links", "traceState", "flags") if _get(row, key)}
    end = moment_in(_get(row, "endTimeUnixNano"), f"{path}.endTimeUnixNano", troubles)
    code = status.get("code")
    return Span(
        id=sid or path,
        parent=text_or_none(_get(row, "parentSpanId")),
        name=text_or_none(row.get("name")) or "span",
        start=moment_in(_get(row, "startTimeUnixNano"), f"{path}.startTimeUnixNano", troubles),
        end=end or None,
        ok=_CODES.get(code) if isinstance(code, int | str) else None,
        error=text_or_none(status.get("message")),
        attributes=_facts(_get(row, "attributes")),
        events=[
            Event(
                text_or_none(event.get("name")) or "event",
                moment_in(_get(event, "timeUnixNano"), f"{at}.timeUnixNano", troubles),
                _facts(_get(event, "attributes")),
            )
            for at, event in _rows(row, path, "events", troubles)
        ],
        origin={"trace_id": text_or_none(_get(row, "traceId")) or "", **origin, **more},
    )


def _get(row: Mapping[str, Any], key: str) -> Any:
    if key in row:
        return row[key]
    return row.get("".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in key))


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
        if (scalar := _get(value, key)) is not None:
            return scalar
    if (number := _get(value, "intValue")) is not None:
        try:
            return int(number) if isinstance(number, str) and len(number) < 32 else number
        except ValueError:
            return number
    if (listed := _get(value, "arrayValue")) is not None:
        rows = mapping(listed).get("values")
        return [_plain(row) for row in rows] if isinstance(rows, list) else []
    if (keyed := _get(value, "kvlistValue")) is not None:
        return _facts(mapping(keyed).get("values"))
    return None
