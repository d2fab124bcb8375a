"""OTLP in protobuf gives the graph that the same spans give in JSON."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tracing.recordings import record_memory
from tracing import load_trace
from tracing.errors import TraceError
from tracing.files.file_kinds import kind_of
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import mlflow_traces, otlp, read_graph

pytest.importorskip("opentelemetry.proto")
IDS = ("traceId", "spanId", "parentSpanId")


def message_of(document: dict[str, Any]) -> bytes:
    """The message of a document of OTLP JSON."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    def with_bytes(value: Any) -> Any:
        if isinstance(value, list):
            return [with_bytes(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            key: base64.b64encode(bytes.fromhex(item)).decode() if key in IDS else with_bytes(item)
            for key, item in value.items()
        }

    return ParseDict(with_bytes(document), TracesData()).SerializeToString()


def framed(*messages: bytes) -> bytes:
    """Messages as the collector's file exporter writes them."""
    return b"".join(len(message).to_bytes(4) + message for message in messages)


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    """A recorded trace as OTLP JSON, with a link and an event."""
    record_memory(tmp_path / "run.jsonl", fails=True)
    exported = otlp.document_of(load_trace(tmp_path / "run.jsonl").graph)
    spans = exported["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[1]["links"] = [{"traceId": spans[0]["traceId"], "spanId": spans[0]["spanId"]}]
    assert not spans[0]["events"]
    values = [{"stringValue": "x"}, {"intValue": "7"}, {"boolValue": True}, {"doubleValue": 0.5}]
    about = [{"key": "list", "value": {"arrayValue": {"values": values}}}]
    spans[0]["events"] = [{"timeUnixNano": spans[0]["startTimeUnixNano"], "name": "note", "attributes": about}]
    return exported


def from_json(document: dict[str, Any], tmp_path: Path) -> ExecutionGraph:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(document))
    return otlp.load(path)


def same(graph: ExecutionGraph, other: ExecutionGraph) -> bool:
    return (graph.variables, graph.operations, graph.sessions) == (other.variables, other.operations, other.sessions)


@pytest.mark.parametrize("frame", [bytes, framed])
def test_a_message_is_read_as_the_document_is(frame: Any, document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "spans.pb"
    path.write_bytes(frame(message_of(document)))
    graph, problem = read_graph(path)
    assert problem is None
    assert same(graph, from_json(document, tmp_path))


def test_messages_one_after_another_are_one_trace(document: dict[str, Any], tmp_path: Path) -> None:
    scope = document["resourceSpans"][0]["scopeSpans"][0]
    parts = [
        {"resourceSpans": [{**document["resourceSpans"][0], "scopeSpans": [{**scope, "spans": [span]}]}]}
        for span in scope["spans"]
    ]
    path = tmp_path / "spans.pb"
    path.write_bytes(framed(*map(message_of, parts)))
    assert same(otlp.load(path), from_json(document, tmp_path))


def test_a_torn_last_message_is_told_and_the_others_are_kept(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "spans.pb"
    message = message_of(document)
    path.write_bytes(framed(message, message)[:-20])
    imported = otlp.read(path)
    assert imported.warnings == ("message 2: is cut off or damaged and was left out",)
    assert same(imported.graph, from_json(document, tmp_path))


@pytest.mark.parametrize("frame", [bytes, framed])
def test_a_message_that_is_cut_off_is_refused(frame: Any, document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "spans.pb"
    path.write_bytes(frame(message_of(document))[:-20])
    with pytest.raises(TraceError, match=r"spans\.pb: is OTLP in protobuf, but cut off or damaged; export it again"):
        otlp.load(path)


def test_without_the_package_the_remedy_is_told(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spans.pb"
    path.write_bytes(message_of(document))
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.trace.v1.trace_pb2", None)
    with pytest.raises(TraceError, match=r"opentelemetry-proto is not installed: pip install 'memtune\[track\]'"):
        otlp.load(path)


def test_other_readers_say_what_it_is(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "spans.pb"
    path.write_bytes(message_of(document))
    with pytest.raises(TraceError, match=r"it looks like an OpenTelemetry trace; `memtune trace import .* --from otlp"):
        mlflow_traces.load(path)
    kind = kind_of(path)
    assert kind is not None
    assert kind.name == "otlp"


def test_other_bytes_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "weights.pb"
    path.write_bytes(b"\n\x10" + bytes(range(256)) * 4)
    with pytest.raises(TraceError, match="is not JSON"):
        otlp.load(path)
