"""Traces on disk: an append-only file of JSON lines that can be read whatever moment its writer was killed at.

The first line is the header; then one record a line: sessions, variables and operations, each after what it refers to
(but for `parent`: an outer operation ends, and is written, after the inner). `type` says which, the other keys are
the fields of the class; a record of type `graph` adds to the attributes of the whole. UTF-8, keys of a record in the
order of its fields.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracing.elements import Operation, Session, Variable
from tracing.errors import TraceError
from tracing.graph import ExecutionGraph

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Record = dict[str, Any]
FORMAT = "memtune-trace"
VERSION = 1
HEADER: Record = {"type": "header", "format": FORMAT, "version": VERSION}
# Every Unicode character as itself, and one encoder for all records: `json.dumps` would build one each time.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_CLASSES: dict[str, type[Session] | type[Variable] | type[Operation]] = {
    "session": Session,
    "variable": Variable,
    "operation": Operation,
}
_GRAPH = "graph"
_FIELDS = {kind: tuple(field.name for field in fields(cls)) for kind, cls in _CLASSES.items()}


@dataclass(frozen=True, slots=True)
class LoadedTrace:
    """What could be read of a trace file.

    Attributes:
        graph: everything up to the last complete record.
        problem: None, or what comes after it and why it was left out.
    """

    graph: ExecutionGraph
    problem: str | None


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
            self._file.write(_line(record))
            self._file.flush()
        except OSError as error:
            raise TraceError(
                f"{self._path}: cannot be written: {error.strerror}; make room or give another path"
            ) from error

    def close(self) -> None:
        """Close the file; closing it again does nothing."""
        self._file.close()


def _line(record: Record) -> bytes:
    try:
        return _encode(record).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair is text in Python, but not in UTF-8
        return _encode_ascii(record).encode() + b"\n"


_HEADER_BEGINNINGS = frozenset(_line(HEADER)[:length] for length in range(len(_line(HEADER)) - 1))
"""What a writer killed within its first line leaves behind."""


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
    facts: list[Record] = [{"type": _GRAPH, "attributes": dict(graph.attributes)}] if graph.attributes else []
    return facts + [record_of(item) for item in (*items, *graph.operations.values())]


def save_trace(graph: ExecutionGraph, path: Path) -> None:
    """Write a whole graph as a new trace file.

    Raises:
        TraceError: the file holds something already, or cannot be written.
    """
    with contextlib.closing(TraceFile(path)) as file:
        for record in records_of(graph):
            file.write(record)


def extend_graph(graph: ExecutionGraph, record: Mapping[str, Any]) -> Session | Variable | Operation | None:
    """Add what a record describes to the graph and return it; None where it was about the graph itself.

    Raises:
        TraceError: the record is malformed, or refers to what is not in the graph.
    """
    from pydantic import ValidationError

    kind = record.get("type")
    if kind == _GRAPH:
        facts = record.get("attributes")
        if not isinstance(facts, Mapping):
            raise TraceError("a graph record is malformed: its attributes are no object")
        graph.attributes.update(facts)
        return None
    if kind not in _CLASSES:
        raise TraceError(f"a record has the unknown type {kind!r}; known are {', '.join((_GRAPH, *_CLASSES))}")
    try:
        item: Session | Variable | Operation = _adapter(kind).validate_python(
            {key: value for key, value in record.items() if key != "type"}
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise TraceError(f"a {kind} record is malformed: {where}: {first['msg']}") from None
    if isinstance(item, Session):
        graph.add_session(item)
    elif isinstance(item, Variable):
        if item.previous is not None and item.previous not in graph.variables:
            raise TraceError(f"variable {item.id} names the unknown version {item.previous!r} before it")
        graph.add_variable(item)
    else:
        graph.add_operation(item)
    return item


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(_CLASSES[kind])


def graph_of(records: Iterable[Mapping[str, Any]]) -> ExecutionGraph:
    """The graph that records describe; headers among them are passed over.

    Raises:
        TraceError: a record is malformed, or refers to what does not come before it.
    """
    graph = ExecutionGraph()
    for record in records:
        if record.get("type") != "header":
            extend_graph(graph, record)
    return graph


def load_trace(path: Path) -> LoadedTrace:
    """Read a trace file up to its last complete record.

    Whatever byte the writer was stopped at, all complete records load and `problem` names the rest; so it does for a
    damaged record in the middle and what follows it.

    Raises:
        TraceError: there is no such file, or it is not a trace of a version this memtune knows.
    """
    graph = ExecutionGraph()
    try:
        with path.open("rb") as lines:
            first = lines.readline()
            if first in _HEADER_BEGINNINGS:
                return LoadedTrace(graph, f"{path}: the trace was cut off before its first record")
            _check_header(path, first)
            for number, line in enumerate(lines, start=2):
                try:
                    extend_graph(graph, _parsed(line))
                except TraceError as error:
                    rest = len(line) + sum(len(other) for other in lines)
                    return LoadedTrace(
                        graph, f"{path}:{number}: {error}; it and all that follows ({rest} bytes) was left out"
                    )
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}; give the path of a recorded trace") from None
    return LoadedTrace(graph, None)


def _parsed(line: bytes) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        unfinished = not line.endswith(b"\n")
        raise TraceError("the last line is unfinished" if unfinished else "the line is not JSON") from None
    if not isinstance(record, dict):
        raise TraceError("the line is not a JSON object")
    return record


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = _parsed(line)
    except TraceError:
        header = {}
    if header.get("type") != "header" or header.get("format") != FORMAT:
        raise TraceError(
            f"{path}: is not a trace: its first line is no {FORMAT} header; give the path of a recorded trace"
        )
    if header.get("version") != VERSION:
        raise TraceError(
            f"{path}: has format version {header.get('version')!r}, this memtune reads {VERSION}; "
            "install the memtune that wrote it"
        )
