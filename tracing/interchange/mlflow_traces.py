"""Import and export of MLflow traces: the JSON of `Trace.to_json()`, and a trace logged to a tracking store.

Only `log_trace` needs mlflow.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracing.files.depth import loads
from tracing.files.file_kinds import MLFLOW
from tracing.graph.elements import Link, Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import Imported, Troubles, mapping, require_room, text_or_none, to_json, write_pieces
from tracing.interchange.span_files import read_spans, rows_at, span_of
from tracing.interchange.span_graphs import spans_of
from tracing.interchange.spans import RECORD, Event, Span, digest, trace_id_of

if TYPE_CHECKING:
    from mlflow import MlflowClient

KEY = "mlflow"
"""Attribute of a graph: MLflow's information about the traces that memtune did not write."""

_SPAN_TYPES = {"llm": "LLM", "retrieval": "RETRIEVER", "embedding": "EMBEDDING", "tool": "TOOL", "graph": "CHAIN"}
_REQUEST = "mlflow.traceRequestId"


def load(path: Path) -> ExecutionGraph:
    """The graph in a file of MLflow traces; `read` also reports repairs, and raises the same."""
    return read(path).graph


def read(path: Path) -> Imported:
    """The graph in a file of MLflow traces (one, a list, or one a line), and what was repaired or left out.

    Raises:
        TraceError: the file cannot be read, or has no trace.
    """
    others: list[Mapping[str, Any]] = []

    def spans_in(where: str, document: Any, troubles: Troubles) -> list[Span]:
        spans = list(_spans(where, mapping(document), troubles))
        if any(RECORD not in span.attributes for span in spans):
            others.append(mapping(mapping(document).get("info")))
        return spans

    imported = read_spans(
        path, MLFLOW, "spans of MLflow", "give the JSON of a trace, with info and data.spans", spans_in
    )
    if others:
        imported.graph.attributes[KEY] = {"traces": others}
    return imported


def write(graph: ExecutionGraph, path: Path) -> None:
    """Write a graph as a new file with the JSON of one MLflow trace; raises as `Format.write` does."""
    write_pieces(path, (to_json(document_of(graph)), "\n"))


# --- out -----------------------------------------------------------------------------------------------------------


def document_of(graph: ExecutionGraph) -> dict[str, Any]:
    """The graph as MLflow's JSON of one trace, for `mlflow.entities.Trace.from_dict`.

    Raises:
        TraceError: its values are too long for one document.
    """
    spans = _spans_of(graph)
    trace = trace_id_of(spans)
    root = spans[0]
    failed = any(span.ok is False for span in spans)
    seconds, rest = divmod(root.start, 10**9)
    begun = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest // 1000)
    return {
        "info": {
            "trace_id": f"tr-{trace}",
            "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}},
            "request_time": begun.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "state": "ERROR" if failed else "OK",
            "trace_metadata": {"mlflow.trace_schema.version": "3"},
            "tags": {"mlflow.traceName": root.name},
            "execution_duration_ms": ((root.end or root.start) - root.start) // 10**6,
        },
        "data": {"spans": [written_span(span, trace) for span in spans]},
    }


def log_trace(
    graph: ExecutionGraph, client: MlflowClient, experiment_id: str, *, tags: Mapping[str, str] | None = None
) -> str:
    """Log a graph as one trace of an experiment and return the trace's id; `read` accepts its JSON.

    The client may write in the background: `mlflow.flush_trace_async_logging()` waits for it.

    Raises:
        TraceError: the values of the graph are too long for one trace.
    """
    root, *spans = _spans_of(graph)
    started = client.start_trace(
        root.name,
        span_type=span_type(root.kind),
        attributes=root.attributes,
        tags=dict(tags or {}),
        experiment_id=experiment_id,
        start_time_ns=root.start,
    )
    span_ids = {root.id: started.span_id}
    _add_events(started, root)
    for span in spans:
        begun = client.start_span(
            span.name,
            trace_id=started.trace_id,
            parent_id=span_ids[span.parent or root.id],
            span_type=span_type(span.kind),
            attributes=span.attributes,
            start_time_ns=span.start,
        )
        span_ids[span.id] = begun.span_id
        _add_events(begun, span)
        client.end_span(
            started.trace_id,
            begun.span_id,
            status="ERROR" if span.ok is False else "OK",
            end_time_ns=span.start if span.end is None else span.end,
        )
    client.end_trace(started.trace_id, end_time_ns=root.end)
    return str(started.trace_id)


def _add_events(live: Any, span: Span) -> None:
    from mlflow.entities import SpanEvent

    for event in span.events:
        live.add_event(SpanEvent(event.name, timestamp=event.time, attributes=dict(event.attributes)))


def _spans_of(graph: ExecutionGraph) -> list[Span]:
    """The spans of a graph, with what MLflow shows under MLflow's own names."""
    require_room(
        graph, (link for operation in graph.operations.values() for link in chain(operation.inputs, operation.outputs))
    )
    operations = {digest("operation", operation.id): operation for operation in graph.operations.values()}
    spans = spans_of(graph)
    for span in spans:
        for name in ("gen_ai.input.messages", "gen_ai.output.messages"):  # the values are inputs and outputs here
            span.attributes.pop(name, None)
        operation = operations.get(span.id)
        if operation is not None:
            span.attributes["mlflow.spanInputs"] = values_by_role(graph, operation.inputs)
            span.attributes["mlflow.spanOutputs"] = values_by_role(graph, operation.outputs)
            span.attributes |= token_usage(operation)
        span.name = encodable(span.name)
        span.error = encodable(span.error)
        span.attributes = encodable(span.attributes)
        span.events = [Event(event.name, event.time, encodable(event.attributes)) for event in span.events]
    return spans


def encodable(facts: Any) -> Any:
    """`shown` with each half of a surrogate pair replaced: a store would drop the whole trace for one."""
    text = json.dumps(facts, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return facts


def span_type(kind: str) -> str:
    """MLflow's type for a span of an operation of this kind."""
    return _SPAN_TYPES.get(kind, "TASK")


def token_usage(operation: Operation) -> dict[str, Any]:
    """The tokens of an operation that called a model, as MLflow counts them; empty for others."""
    if not operation.calls:
        return {}
    sent, received = operation.prompt_tokens, operation.completion_tokens
    return {
        "mlflow.chat.tokenUsage": {"input_tokens": sent, "output_tokens": received, "total_tokens": sent + received}
    }


def values_by_role(graph: ExecutionGraph, links: Sequence[Link]) -> dict[str, Any]:
    """Role → value; a list of named values if several variables have that role."""
    by_role: dict[str, list[str]] = {}
    for role, variable in links:
        by_role.setdefault(role, []).append(variable)
    return {
        role: graph.variables[ids[0]].value
        if len(ids) == 1
        else [{graph.variables[vid].name: graph.variables[vid].value} for vid in ids]
        for role, ids in by_role.items()
    }


def written_span(span: Span, trace: str) -> dict[str, Any]:
    """A span as MLflow writes it, for `mlflow.entities.Span.from_dict`; `trace` is the id of its trace in digits."""
    code = {True: "STATUS_CODE_OK", False: "STATUS_CODE_ERROR", None: "STATUS_CODE_UNSET"}[span.ok]
    attributes = {_REQUEST: f"tr-{trace}", "mlflow.spanType": span_type(span.kind), **span.attributes}
    return {
        "trace_id": _base64(trace),
        "span_id": _base64(span.id),
        "parent_span_id": _base64(span.parent) if span.parent else None,
        "name": span.name,
        "start_time_unix_nano": span.start,
        "end_time_unix_nano": span.end,
        "events": [
            {"name": event.name, "time_unix_nano": event.time, "attributes": dict(event.attributes)}
            for event in span.events
        ],
        "status": {"code": code, "message": span.error or ""},
        "attributes": {name: json.dumps(value) for name, value in attributes.items()},
        "links": [],
    }


def _base64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


# --- in ------------------------------------------------------------------------------------------------------------


def _spans(where: str, document: Mapping[str, Any], troubles: Troubles) -> Iterator[Span]:
    info = mapping(document.get("info"))
    trace = text_or_none(info.get("trace_id")) or text_or_none(info.get("request_id")) or where
    # Session and user of a trace are told once for all its spans.
    facts = mapping(info.get("trace_metadata") or info.get("request_metadata"))
    origin = {"trace_id": trace} | ({"metadata": facts} if facts else {})
    for path, row in rows_at(document.get("data"), f"{where}.data", "spans", troubles):
        span = span_of(_current(row), path, origin, troubles, attributes_of=mapping, id_of=_hexadecimal)
        span.attributes = {name: _parsed(value) for name, value in span.attributes.items()}
        yield span


def _current(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A span as MLflow 3 writes it, also where MLflow 2 has written it with `context` and `start_time`."""
    events = row.get("events")
    if isinstance(events, list):
        events = [
            {"time_unix_nano": event.get("timestamp"), **event} if isinstance(event, dict) else event
            for event in events
        ]
    return {
        "span_id": mapping(row.get("context")).get("span_id"),
        "parent_span_id": row.get("parent_id"),
        "start_time_unix_nano": row.get("start_time"),
        "end_time_unix_nano": row.get("end_time"),
        "status": {"code": row.get("status_code"), "message": row.get("status_message")},
        **row,
        "events": events,
    }


def _hexadecimal(span_id: Any) -> str | None:
    """The id of a span: MLflow writes its bytes in base64, or hexadecimal digits after 0x."""
    if not isinstance(span_id, str) or not span_id:
        return None
    try:
        return base64.b64decode(span_id, validate=True).hex() if len(span_id) == 12 else span_id.removeprefix("0x")
    except (binascii.Error, ValueError):
        return span_id


def _parsed(value: Any) -> Any:
    """Attributes are JSON in text."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except ValueError:
        return value
