"""The writing side of a trace file, off the path of the program that is recorded."""

from __future__ import annotations

import atexit
import errno
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

from tracing.errors import TraceError
from tracing.files.trace_file import TraceFile
from tracing.files.trace_lines import HEADER, Lines
from tracing.recording.graph_builder import GraphBuilder

NAP_S = 0.02
"""How long the writer waits for more once there is something to write; what a kill can cost."""
MOST_NOTES = 8192
"""Notes that may wait for the writer; the thread that notes one more does its work."""
MOST_HELD = 16 * 2**20
"""Bytes kept while they cannot be written, in case the disk has room again."""


class TraceWriter:
    """Encodes and writes what the graph builder has for the file, in a thread of its own.

    The file always is a beginning of what was recorded: after a failure nothing is written until what failed is.

    Attributes:
        lost: records that could not be written; those that are still held may be yet.

    Raises:
        TraceError: the file holds something already, or cannot be one.
    """

    def __init__(self, path: Path, lock: threading.RLock, settle: Callable[[], None], builder: GraphBuilder) -> None:
        self.lost = 0
        self._path, self._settle, self._builder = path, settle, builder
        self._notes = builder.notes
        self._settling = lock
        self._writing = threading.RLock()
        self._lines = Lines()
        self._header = self._lines.line(HEADER)
        self._held: list[bytes] = [self._header]
        self._file: TraceFile | None = None
        self._has_warned = self._given_up = self._idle = self._over = False
        self._wake, self._closed = threading.Event(), threading.Event()
        self.write()
        self._thread = threading.Thread(target=self._run, name="memtune-trace", daemon=True)
        self._thread.start()
        _writers.add(self)
        atexit.register(self.close)

    def note(self, note: object) -> None:
        """Note something that is to be written once it is settled; the caller does not hold the recorder's lock."""
        self._notes.append(note)
        self.notice()

    def notice(self) -> None:
        """There is something to write."""
        if self._over:
            return
        if self._idle:
            self._idle = False
            self._wake.set()
        elif len(self._notes) > MOST_NOTES:
            self.write()

    def write(self) -> None:
        """Write all there is."""
        with self._writing:
            if self._over:
                return
            self._settle()
            with self._settling:
                items, self._builder.unwritten = self._builder.unwritten or [], []
            line = self._lines.line
            self._append([line(item) for item in items])

    def close(self) -> None:
        """Write the rest and close the file; closing it again does nothing."""
        with self._writing:
            if self._over:
                return
            self.write()
            self._over = True
            self._closed.set()
            self._wake.set()
            if self._file is not None:
                self._file.close()
            if self.lost:
                _warn("%s: %d records were lost; the trace in memory has them", self._path, self.lost)
            self._held.clear()
        atexit.unregister(self.close)

    def hold(self) -> None:
        """Let no thread be within this writer or its recorder while the process forks."""
        self._writing.acquire()
        self._settling.acquire()

    def go_on(self, *, over: bool = False) -> None:
        """Undo `hold`; `over` where nothing is to be written any more."""
        self._over = self._over or over
        self._settling.release()
        self._writing.release()

    def _run(self) -> None:
        while not self._over:
            self._idle = True
            # Who noted something before it was idle has not woken it.
            if not self._notes and not self._builder.unwritten:
                self._wake.wait()
            self._idle = False
            self._wake.clear()
            if not self._closed.wait(NAP_S):
                self.write()

    def _append(self, lines: list[bytes]) -> None:
        if self._given_up:
            self.lost += len(lines)
            return
        self._held += lines
        if not self._held:
            return
        count, problem = self._attempt()
        del self._held[:count]
        self.lost = len(self._held) - (self._held[:1] == [self._header])
        if problem is None:
            return
        if not self._has_warned:
            self._has_warned = True
            _warn(
                "%s: cannot be written: %s; the program continues, and what is recorded is kept in memory only; "
                "make room or give another path",
                self._path,
                problem.strerror,
            )
        if sum(map(len, self._held)) > MOST_HELD:
            self._given_up = True
            self._held.clear()

    def _attempt(self) -> tuple[int, OSError | None]:
        try:
            if self._file is None:
                self._file = TraceFile(self._path)
            return self._file.append(self._held)
        except OSError as error:
            return 0, error
        except TraceError as error:
            if not self._has_warned:
                raise  # the path was unusable from the start
            return 0, FileExistsError(errno.EEXIST, str(error))


def _warn(message: str, *arguments: object) -> None:
    import logging

    logging.getLogger("tracing").warning(message, *arguments)


_writers: weakref.WeakSet[TraceWriter] = weakref.WeakSet()
_forking: list[TraceWriter] = []
_turn = threading.Lock()
"""Threads that fork at once would each hold writers that the other waits for."""


def _before_fork() -> None:
    _turn.acquire()
    _forking[:] = _writers
    for writer in _forking:
        writer.hold()


def _after_fork_in_parent() -> None:
    for writer in _forking:
        writer.go_on()
    _forking.clear()
    _turn.release()


def _after_fork_in_child() -> None:
    # The file is the parent's, and the thread that writes it does not exist here.
    for writer in _forking:
        writer.go_on(over=True)
    _forking.clear()
    _turn.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
