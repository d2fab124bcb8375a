"""Reading traces: a file or a list of records becomes an execution graph, as far as it is sound.

A record of an unknown type ends the reading, since what follows may refer to it; unknown keys are left out and
reported. A trace is loaded at once and most of it lives on, so the garbage collector pauses meanwhile.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tracing.errors import TraceError
from tracing.files.depth import DEEPEST_LINE, is_too_deep
from tracing.files.file_kinds import TRACE, likeness
from tracing.files.opening import open_file
from tracing.files.records import RecordReader
from tracing.files.trace_lines import FORMAT, HEADER, VERSION, Lines, Record
from tracing.formats import check_format
from tracing.graph.elements import Operation, Session, Variable
from tracing.graph.execution_graph import ExecutionGraph


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking through all that was loaded, again and again, while it grows."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                # All that came is old now, without a walk through it as through what is young.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@dataclass(frozen=True, slots=True)
class LoadedTrace:
    """What could be read of a trace file.

    Attributes:
        graph: everything up to the last complete record.
        problem: None, or what comes after it and why it was left out.
        notes: what was left out of records that did load, a line each: keys that this memtune does not know.

    Example:
        >>> with trace("run.jsonl"):
        ...     reply = answered("Where does Mara live?", "Oslo")
        >>> loaded = load_trace("run.jsonl")
        >>> loaded.graph.variables[reply.id].value, loaded.problem
        ('Oslo', None)
    """

    graph: ExecutionGraph
    problem: str | None
    notes: tuple[str, ...] = ()


def load_trace(path: str | Path) -> LoadedTrace:
    """Read a trace file up to its last complete record.

    Whatever byte the writer was stopped at, all complete records load and `problem` names the rest; so it does for a
    damaged record in the middle and what follows it.

    Raises:
        TraceError: there is no such file, or it is not a trace of a version this memtune knows.

    Example:
        >>> with trace("run.jsonl"):
        ...     reply = answered("Where does Mara live?", "Oslo")
        >>> [step.name for step in load_trace("run.jsonl").graph.producers(reply.id)]
        ['answer']
    """
    path, reader = Path(path), RecordReader(ExecutionGraph())
    decode, admit = _decoder.decode, reader.admit
    problem = None
    try:
        with open_file(path) as lines, collector_paused():
            first = lines.readline()
            if first in _HEADER_BEGINNINGS:
                return LoadedTrace(reader.graph, f"{path}: the trace was cut off before its first record")
            _check_header(path, first)
            number = 1
            try:
                for line in lines:
                    number += 1
                    try:
                        element = decode(line)
                    except (ValueError, RecursionError):
                        reader.add(_parsed(line))
                    else:
                        if len(line) > _SURELY_FLAT and is_too_deep(line, DEEPEST_LINE):
                            raise TraceError(f"the line is nested more than {DEEPEST_LINE} levels deep")
                        admit(element)
            except TraceError as error:
                rest = len(line) + sum(len(other) for other in lines)
                problem = f"{path}:{number}: {error}; it and all that follows ({rest} bytes) was left out"
    except OSError as error:
        looks = likeness(path) or "give the path of a recorded trace"
        raise TraceError(f"{path}: cannot be read: {error.strerror}; {looks}") from None
    return LoadedTrace(reader.graph, problem, reader.notes())


def graph_of(records: Iterable[Mapping[str, Any]]) -> ExecutionGraph:
    """The graph that records describe; headers among them are passed over.

    Raises:
        TraceError: a record is malformed, or refers to what does not come before it.

    Example:
        >>> record = {"type": "variable", "id": "v1", "name": "D1:1", "kind": "message", "value": "I moved to Oslo."}
        >>> graph_of([record]).variables["v1"].value
        'I moved to Oslo.'
    """
    reader = RecordReader(ExecutionGraph())
    with collector_paused():
        for record in records:
            if record.get("type") != "header":
                reader.add(record)
    return reader.graph


_decoder = msgspec.json.Decoder(Session | Variable | Operation)
_SURELY_FLAT = 2 * DEEPEST_LINE
"""Bytes that a line of that many levels has at least, for their brackets."""

_HEADERS = [Lines().line({**HEADER, "version": version}) for version in range(1, VERSION + 1)]
_HEADER_BEGINNINGS = frozenset(line[:length] for line in _HEADERS for length in range(len(line) - 1))
"""What a writer killed within its first line leaves behind."""


def _parsed(line: bytes) -> Record:
    if is_too_deep(line, DEEPEST_LINE):
        raise TraceError(f"the line is nested more than {DEEPEST_LINE} levels deep")
    try:
        record = json.loads(line, parse_constant=_refuse)
    except ValueError:
        unfinished = not line.endswith(b"\n")
        raise TraceError("the last line is unfinished" if unfinished else "the line is not JSON") from None
    if not isinstance(record, dict):
        raise TraceError("the line is not a JSON object")
    return record


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = _parsed(line)
    except TraceError:
        header = {}
    if header.get("type") != "header" or header.get("format") != FORMAT:
        looks = likeness(path, TRACE) or "give the path of a recorded trace"
        raise TraceError(f"{path}: is not a trace: its first line is no {FORMAT} header; {looks}")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise TraceError(f"{path}: has format version {version!r}; versions are numbers from 1, so record it again")
    check_format("trace", version, path, TraceError)
