"""Traces on disk: an append-only file of JSON lines that can be read whatever moment its writer was killed at.

The first line is the header; then one record a line: sessions, variables and operations, each after what it refers to
(but for `parent`: an outer operation ends, and is written, after the inner). `type` says which, the other keys are
the fields of the class; a record of type `graph` adds to the attributes of the whole. UTF-8, keys of a record in the
order of its fields. Since version 2 a variable may have, in place of `value`, `value_of`: the id of one before it that
has the same large value.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracing.elements import Operation, Session, Variable
from tracing.errors import TraceError
from tracing.graph import ExecutionGraph
from tracing.lines import FORMAT, HEADER, VERSION, Lines, Record, record_of
from tracing.writer import TraceFile

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_CLASSES: dict[str, type[Session] | type[Variable] | type[Operation]] = {
    "session": Session,
    "variable": Variable,
    "operation": Operation,
}
_GRAPH = "graph"


@dataclass(frozen=True, slots=True)
class LoadedTrace:
    """What could be read of a trace file.

    Attributes:
        graph: everything up to the last complete record.
        problem: None, or what comes after it and why it was left out.
    """

    graph: ExecutionGraph
    problem: str | None


_HEADERS = [Lines().line({**HEADER, "version": version}) for version in range(1, VERSION + 1)]
_HEADER_BEGINNINGS = frozenset(line[:length] for line in _HEADERS for length in range(len(line) - 1))
"""What a writer killed within its first line leaves behind."""


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
    try:
        with contextlib.closing(TraceFile(path)) as file:
            lines = Lines()
            _, problem = file.append([lines.line(record) for record in (HEADER, *records_of(graph))])
            if problem is not None:
                raise problem
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error.strerror}; make room or give another path") from error


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
    if kind == "variable" and "value_of" in record:
        holder = graph.variables.get(record["value_of"])
        if holder is None:
            raise TraceError(f"variable {record.get('id')} has the value of the unknown {record['value_of']!r}")
        record = {**record, "value": holder.value}
    try:
        item: Session | Variable | Operation = _adapter(kind).validate_python(
            {key: value for key, value in record.items() if key not in ("type", "value_of")}
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
    if header.get("version") not in range(1, VERSION + 1):
        raise TraceError(
            f"{path}: has format version {header.get('version')!r}, this memtune reads 1 to {VERSION}; "
            "install the memtune that wrote it"
        )
