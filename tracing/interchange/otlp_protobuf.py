"""OTLP in protobuf, as exporters send it and the collector writes it, as documents of its JSON."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tracing.errors import TraceError
from tracing.interchange.documents import Troubles

_SIZE = 4
"""Bytes before each message in a file of the collector: its length, the most significant byte first."""

_IDS = ("traceId", "spanId", "parentSpanId")


def documents_in_protobuf(path: Path, content: bytes, troubles: Troubles) -> list[tuple[str, Any]]:
    """The documents of a file with one message, or one after another as the collector writes them; each with its place.

    A message is `TracesData` or the body of a request to `/v1/traces`, which are equal on the wire.

    Raises:
        TraceError: the file is cut off or no such message, or opentelemetry-proto is not installed.
    """
    try:
        data = import_module("opentelemetry.proto.trace.v1.trace_pb2").TracesData
        as_json = import_module("google.protobuf.json_format").MessageToDict
        protobuf = import_module("google.protobuf.message")
    except ImportError:
        raise TraceError(
            f"{path}: is OTLP in protobuf, and opentelemetry-proto is not installed: pip install 'memtune[track]', or "
            "export OTLP as JSON"
        ) from None
    documents: list[tuple[str, Any]] = []
    for place, message in _messages(content):
        try:
            document = as_json(data.FromString(message), use_integers_for_enums=True)
        except protobuf.DecodeError:
            if not documents:
                raise TraceError(f"{path}: is OTLP in protobuf, but cut off or damaged; export it again") from None
            troubles.add("is cut off or damaged and was left out", place)
            continue
        _write_ids(document)
        documents.append((place, document))
    return documents


def _messages(content: bytes) -> Iterator[tuple[str, bytes]]:
    if content[0]:  # a field, as no length of less than 16 MB begins
        yield "", content
        return
    at, number = 0, 0
    while at < len(content):
        number, begin = number + 1, at + _SIZE
        at = begin + int.from_bytes(content[at:begin])
        yield f"message {number}", content[begin:at]


def _write_ids(document: dict[str, Any]) -> None:
    """The ids in hexadecimal digits, as OTLP has them and other bytes of protobuf's JSON are not."""
    scopes = (scope for group in document.get("resourceSpans", ()) for scope in group.get("scopeSpans", ()))
    for span in (span for scope in scopes for span in scope.get("spans", ())):
        for row in (span, *span.get("links", ())):
            row |= {name: base64.b64decode(row[name]).hex() for name in _IDS if name in row}
