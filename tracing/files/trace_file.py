"""Traces on disk: an append-only file of JSON lines that can be read whatever moment its writer was killed at.

The first line is the header; then one record a line: sessions, variables and operations, each after what it refers to
(but for `parent`: an outer operation ends, and is written, after the inner). `type` says which, the other keys are
the fields of the class; a record of type `graph` adds to the attributes of the whole. UTF-8, keys of a record in the
order of its fields. Since version 2 a variable may have, in place of `value`, `value_of`: the id of one before it that
has the same large value.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from tracing.errors import TraceError
from tracing.files.trace_lines import GRAPH, HEADER, Lines, Record, record_of
from tracing.graph.elements import Element, Variable
from tracing.graph.execution_graph import ExecutionGraph

_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EFBIG)
"""Failures to open a file that may pass, such as a full disk."""


class TraceFile:
    """A new file that grows by whole lines.

    Raises:
        TraceError: it holds something already, or cannot be a file at all.
        OSError: it cannot be written at present.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno in _PASSING:
                raise
            raise TraceError(f"{path}: cannot be opened for a trace: {error.strerror}; give another path") from error
        self._size = os.fstat(self._file).st_size
        if self._size:
            os.close(self._file)
            raise TraceError(f"{path}: holds data already; a trace never overwrites, so delete it or give another path")

    def append(self, lines: Sequence[bytes]) -> tuple[int, OSError | None]:
        """Hand lines to the operating system, so that the death of this process cannot lose them.

        Returns:
            how many of them are in the file, and why not all; a line that got in by half is taken out again.
        """
        data = memoryview(b"".join(lines))
        sent = 0
        try:
            while sent < len(data):
                sent += os.write(self._file, data[sent:])
        except OSError as error:
            whole = count = 0
            for line in lines:
                if whole + len(line) > sent:
                    break
                whole, count = whole + len(line), count + 1
            self._size += whole
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            return count, error
        self._size += sent
        return len(lines), None

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def records_of(graph: ExecutionGraph) -> list[Record]:
    """The records of a whole graph, in an order that can be loaded again; without a header.

    Example:
        >>> graph = ExecutionGraph([Variable("v1", "D1:1", "message", "I moved to Oslo.")])
        >>> records_of(graph)[0]["value"]
        'I moved to Oslo.'
    """
    return [element if isinstance(element, dict) else record_of(element) for element in _in_order(graph)]


def save_trace(graph: ExecutionGraph, path: Path) -> None:
    """Write a whole graph as a new trace file.

    Raises:
        TraceError: the file holds something already, or cannot be written.

    Example:
        >>> save_trace(ExecutionGraph([Variable("v1", "D1:1", "message", "I moved to Oslo.")]), Path("oslo.jsonl"))
        >>> [variable.name for variable in load_trace("oslo.jsonl").graph.variables.values()]
        ['D1:1']
    """
    try:
        with contextlib.closing(TraceFile(path)) as file:
            _, problem = file.append([*map(Lines().line, (HEADER, *_in_order(graph)))])
            if problem is not None:
                raise problem
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error.strerror}; make room or give another path") from error


def _versions_in_order(graph: ExecutionGraph) -> Iterator[Variable]:
    """The variables as recorded, but each after the version before it: a reference stands before what it is of."""
    ids: set[str] = set()
    for variable in graph.variables.values():
        line: list[Variable] = []
        version: Variable | None = variable
        while version is not None and version.id not in ids:
            ids.add(version.id)
            line.append(version)
            version = graph.variables.get(version.previous) if version.previous is not None else None
        yield from reversed(line)


def _in_order(graph: ExecutionGraph) -> Iterator[Element | Record]:
    if graph.attributes:
        yield {"type": GRAPH, "attributes": dict(graph.attributes)}
    yield from graph.sessions.values()
    for version in _versions_in_order(graph):
        # In a slice the version before may be missing; then this one is the first of its line.
        yield (
            version
            if version.previous is None or version.previous in graph.variables
            else replace(version, previous=None)
        )
    yield from graph.operations.values()
