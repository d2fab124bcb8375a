"""Traces on disk: an append-only file of JSON lines that can be read whatever moment its writer was killed at.

The first line is the header; then one record a line: sessions, variables and operations, each after what it refers to
(but for `parent`: an outer operation ends, and is written, after the inner). `type` says which, the other keys are
the fields of the class. UTF-8, keys of a record in the order of its fields.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from tracing.elements import Operation, Session, Variable
from tracing.errors import TraceError
from tracing.graph import ExecutionGraph

Record = dict[str, Any]
FORMAT = "memtune-trace"
VERSION = 1
HEADER: Record = {"type": "header", "format": FORMAT, "version": VERSION}
# Every Unicode character as itself, and one encoder for all records: `json.dumps` would build one each time.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
CLASSES: dict[str, type[Session] | type[Variable] | type[Operation]] = {
    "session": Session,
    "variable": Variable,
    "operation": Operation,
}
"""What a record describes, by its `type`."""
_FIELDS = {kind: tuple(field.name for field in fields(cls)) for kind, cls in CLASSES.items()}


class TraceFile:
    """The writing side of a trace file. Not thread-safe by itself: the recorder writes under its lock.

    Raises:
        TraceError: the file holds something already, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab")
        except OSError as error:
            raise TraceError(f"{path}: cannot be opened for a trace: {error.strerror}; give another path") from error
        if self._file.tell():
            self._file.close()
            raise TraceError(f"{path}: holds data already; a trace never overwrites, so delete it or give another path")
        self.write(HEADER)

    def write(self, record: Record) -> None:
        """Append one record and hand it to the operating system, so that the death of this process cannot lose it."""
        try:
            self._file.write(line_of(record))
            self._file.flush()
        except OSError as error:
            raise TraceError(
                f"{self._path}: cannot be written: {error.strerror}; make room or give another path"
            ) from error

    def close(self) -> None:
        """Close the file; closing it again does nothing."""
        self._file.close()


def line_of(record: Record) -> bytes:
    """A record as it stands in a file."""
    try:
        return _encode(record).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair is text in Python, but not in UTF-8
        return _encode_ascii(record).encode() + b"\n"


def record_of(item: Session | Variable | Operation) -> Record:
    """The JSON record of an item of a graph; lists in place of tuples, so that it equals what a file gives back."""
    kind = type(item).__name__.lower()
    record: Record = {"type": kind}
    for name in _FIELDS[kind]:
        value = getattr(item, name)
        if name in ("inputs", "outputs"):
            value = [list(link) for link in value]
        record[name] = dict(value) if name == "attributes" else value
    return record


def records_of(graph: ExecutionGraph) -> list[Record]:
    """The records of a whole graph, in an order that can be loaded again; without a header."""
    items: list[Session | Variable | Operation] = [*graph.sessions.values(), *graph.variables.values()]
    return [record_of(item) for item in (*items, *graph.operations.values())]
