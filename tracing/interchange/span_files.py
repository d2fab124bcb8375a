"""Files of spans: one document, a list of them, or one a line, with spans as OTLP in JSON has them.

MLflow's are nearly so. Names may be in lower camel case, as the protocol of OpenTelemetry says, or in snake case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tracing.errors import TraceError
from tracing.files.file_kinds import likeness
from tracing.files.loading import collector_paused
from tracing.interchange.documents import (
    Imported,
    Troubles,
    documents_in,
    mapping,
    moment_in,
    read_bytes,
    text_or_none,
)
from tracing.interchange.span_graphs import graph_of_spans
from tracing.interchange.spans import Event, Span

_CODES: Mapping[Any, bool] = {
    **dict.fromkeys((1, "STATUS_CODE_OK", "OK"), True),
    **dict.fromkeys((2, "STATUS_CODE_ERROR", "ERROR"), False),
}


def documents_in_file(path: Path, troubles: Troubles) -> list[tuple[str, Any]]:
    """The documents of a JSON file, each with the key path to it. Raises TraceError: it cannot be read."""
    return documents_in(path, read_bytes(path), troubles)


def read_spans(
    path: Path,
    kind: str,
    noun: str,
    missing: str,
    spans_in: Callable[[str, Any, Troubles], Iterable[Span]],
    *,
    documents_of: Callable[[Path, Troubles], list[tuple[str, Any]]] = documents_in_file,
) -> Imported:
    """The graph of the spans in a file, and what was repaired or left out.

    Args:
        path: of the file.
        kind: the format's name.
        noun: what its spans are called.
        missing: what to say of a file that has none, and does not look like something else.
        spans_in: the spans of a document; it is also given the key path to it, and what collects troubles.
        documents_of: the documents of the file.

    Raises:
        TraceError: the file cannot be read, or has no spans.
    """
    troubles = Troubles()
    with collector_paused():
        documents = documents_of(path, troubles)
        spans = [span for where, document in documents for span in spans_in(where, document, troubles)]
        if not spans:
            raise TraceError(f"{path}: holds no {noun}; {likeness(path, kind) or missing}")
        graph = graph_of_spans(spans, troubles)
    return Imported(graph, troubles.lines())


def rows_at(holder: Any, where: str, key: str, troubles: Troubles) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a list under a key, each with the key path to it."""
    rows = value_at(mapping(holder), key)
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


def span_of(
    row: Mapping[str, Any],
    path: str,
    origin: dict[str, Any],
    troubles: Troubles,
    *,
    attributes_of: Callable[[Any], Mapping[str, Any]],
    id_of: Callable[[Any], str | None] = text_or_none,
) -> Span:
    """The span in a row; formats differ in how they write attributes and ids."""
    sid = id_of(value_at(row, "spanId"))
    if sid is None:
        troubles.add("is missing or no text; one was made up", f"{path}.spanId")
    status = mapping(value_at(row, "status"))
    code = status.get("code")
    end = moment_in(value_at(row, "endTimeUnixNano"), f"{path}.endTimeUnixNano", troubles)
    return Span(
        id=sid or path,
        parent=id_of(value_at(row, "parentSpanId")),
        name=text_or_none(row.get("name")) or "span",
        start=moment_in(value_at(row, "startTimeUnixNano"), f"{path}.startTimeUnixNano", troubles),
        end=end or None,
        ok=_CODES.get(code) if isinstance(code, int | str) else None,
        error=text_or_none(status.get("message")),
        attributes=dict(attributes_of(value_at(row, "attributes"))),
        events=[
            Event(
                text_or_none(event.get("name")) or "event",
                moment_in(value_at(event, "timeUnixNano"), f"{at}.timeUnixNano", troubles),
                attributes_of(value_at(event, "attributes")),
            )
            for at, event in rows_at(row, path, "events", troubles)
        ],
        origin=origin,
    )


def value_at(row: Mapping[str, Any], key: str) -> Any:
    """What stands under a key in camel case, or under its form in snake case."""
    if key in row:
        return row[key]
    return row.get("".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in key))
