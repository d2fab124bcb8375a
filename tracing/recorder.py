"""Recording an execution while it runs.

    with trace(path) as recorder, session("D1"):
        with operation("extract_facts", kind="llm", inputs={"messages": messages, "prompt": prompt}) as op:
            fact = op.output("facts", text, kind="fact")

asyncio tasks inherit what is being recorded; a thread gets it through `bind`. Without a trace all of this does nothing
and costs next to nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

from tracing.elements import Operation, Session, Variable
from tracing.errors import TraceError
from tracing.graph import ExecutionGraph
from tracing.operations import ActiveOperation, operation, traced
from tracing.redaction import redact
from tracing.scope import Scope, bind, current, leave
from tracing.snapshot import snapshot
from tracing.store import Record, TraceFile, extend_graph, record_of, records_of

__all__ = [
    "ActiveOperation",
    "Recorder",
    "bind",
    "current_operation",
    "current_recorder",
    "operation",
    "session",
    "trace",
    "traced",
    "variable",
]

_UNCHANGING = (str, bytes, int, float, complex, type(None))


class Recorder:
    """Takes down sessions, variables and operations, in memory and (given a path) in an append-only file.

    All methods may be called from several threads. Ids come from counters, so that one thread doing the same things
    gets the same ids. A recorded object is kept alive until the recorder is gone, so that its identity stays its own.

    Attributes:
        graph: what has been recorded so far. It grows in place; an operation that has not ended has status "open".
        clock: gives epoch seconds.
        lock: held while the graph grows.
        ended: True once the trace was left; nothing can be recorded any more.
    """

    def __init__(self, path: Path | None, prefix: str, clock: Callable[[], float]) -> None:
        self.graph = ExecutionGraph()
        self.clock = clock
        self.lock = threading.RLock()
        self.ended = False
        self._prefix = prefix
        self._counts = {"v": 0, "o": 0, "s": 0}
        self._objects: dict[int, tuple[object, Variable]] = {}
        self._file = TraceFile(path) if path is not None else None

    def records(self) -> list[Record]:
        """Everything recorded or adopted so far as JSON records, without the header; `adopt` takes them."""
        with self.lock:
            return records_of(self.graph)

    def adopt(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take over an earlier recording, so that operations can refer to its variables; it is written to the file too.

        Raises:
            TraceError: a record is malformed, refers to what does not come before it, or has an id that is taken.
        """
        with self.lock:
            for record in records:
                if record.get("type") == "header":
                    continue
                item = extend_graph(self.graph, record)
                if item is not None:
                    self._skip_id(item.id)
                if self._file is not None:
                    self._file.write(dict(record) if item is None else record_of(item))

    def add_session(self, name: str, attributes: Mapping[str, Any]) -> Session:
        """Take down a session."""
        facts = snapshot(attributes)
        with self.lock:
            made = Session(self.next_id("s"), redact(name), facts)
            self.graph.add_session(made)
            self.write(made)
            return made

    def add_variable(
        self,
        value: Any,
        name: str,
        kind: str,
        previous: Variable | str | None,
        attributes: Mapping[str, Any],
        session: str | None,
    ) -> Variable:
        """Take down a new variable, and remember whose value it is."""
        taken, facts = snapshot(value), snapshot(attributes)
        with self.lock:
            before = self.known(previous) if isinstance(previous, Variable) else self._by_id(previous)
            made = Variable(
                id=self.next_id("v"),
                name=redact(name),
                kind=kind,
                value=taken,
                version=before.version + 1 if before is not None else 1,
                previous=before.id if before is not None else None,
                session=session,
                attributes=facts,
            )
            self.graph.add_variable(made)
            self.write(made)
            if _has_identity(value):
                self._objects[id(value)] = (value, made)
            return made

    def read(self, role: str, value: Any, session: str | None) -> Variable:
        """The variable an input is: itself, that of the same object (a new version if it changed), or a new one."""
        if isinstance(value, Variable):
            known = self.known(value)
            return known or self.add_variable(value.value, value.name, value.kind, None, value.attributes, session)
        found = self.recall(value)
        if found is None:
            return self.add_variable(value, role, "value", None, {}, session)
        if self.unchanged(value, found):
            return found
        return self.add_variable(value, found.name, found.kind, found, {}, session)

    def recall(self, value: Any) -> Variable | None:
        """The latest variable of this very object, never of an equal one."""
        if not _has_identity(value):
            return None
        with self.lock:
            found = self._objects.get(id(value))
            return found[1] if found is not None else None

    @staticmethod
    def unchanged(value: Any, recorded: Variable) -> bool:
        """True where the object still is what was recorded of it."""
        return isinstance(value, _UNCHANGING) or bool(snapshot(value) == recorded.value)

    def earlier_version(self, value: Any) -> Variable | None:
        """The latest variable of this object if the object can change in place; equal texts are no versions."""
        return None if isinstance(value, _UNCHANGING) else self.recall(value)

    def known(self, given: Variable) -> Variable | None:
        """The variable as this trace has it, taken over from another trace if need be; None if it was never recorded.

        Raises:
            TraceError: this trace uses the id for another variable.
        """
        if not given.id:
            return None
        with self.lock:
            present = self.graph.variables.get(given.id)
            if present is None:
                # Its earlier versions and its session stayed in the trace it comes from.
                present = replace(given, previous=None, session=None)
                self._skip_id(given.id)
                self.graph.add_variable(present)
                self.write(present)
            elif present is not given and present != replace(given, previous=present.previous, session=present.session):
                self.graph.add_variable(given)
            return present

    def _by_id(self, vid: str | None) -> Variable | None:
        if not vid:
            return None
        if vid not in self.graph.variables:
            raise TraceError(f"previous={vid!r} is no variable of this trace; adopt the recording it comes from first")
        return self.graph.variables[vid]

    def next_id(self, letter: str) -> str:
        """A fresh id; call it under the lock.

        Raises:
            TraceError: the trace has ended.
        """
        if self.ended:
            raise TraceError("the trace has ended; wait for threads and tasks before leaving `with trace(…)`")
        self._counts[letter] += 1
        return f"{self._prefix}{letter}{self._counts[letter]}"

    def _skip_id(self, used: str) -> None:
        letter, number = used.removeprefix(self._prefix)[:1], used.removeprefix(self._prefix)[1:]
        if used.startswith(self._prefix) and letter in self._counts and number.isdecimal():
            self._counts[letter] = max(self._counts[letter], int(number))

    def write(self, item: Session | Variable | Operation) -> None:
        """Append an item to the file, if there is one; call it under the lock."""
        if self._file is not None:
            self._file.write(record_of(item))

    def end(self) -> None:
        """Write the operations that are still open, and close the file."""
        with self.lock:
            self.ended = True
            if self._file is None:
                return
            try:
                for item in self.graph.operations.values():
                    if item.status == "open":
                        self.write(item)
            finally:
                self._file.close()


def _has_identity(value: Any) -> bool:
    """False for values of which the interpreter keeps one copy for all, so that sharing it says nothing."""
    if value is None or isinstance(value, Enum):
        return False
    if isinstance(value, int):
        return not -5 <= value <= 256
    if isinstance(value, str | bytes):
        return len(value) > 1
    return not (isinstance(value, tuple | frozenset) and not value)


@contextlib.contextmanager
def trace(
    path: str | Path | None = None, *, prefix: str = "", clock: Callable[[], float] = time.time
) -> Iterator[Recorder]:
    """Record what happens inside; an outer trace rests meanwhile.

    Args:
        path: a new file to append records to; None keeps them in memory only.
        prefix: begins every id; traces that are to be merged need different ones.
        clock: gives epoch seconds.

    Raises:
        TraceError: the file holds something already, or cannot be written.
    """
    recorder = Recorder(None if path is None else Path(path), prefix, clock)
    token = current.set(Scope(recorder))
    try:
        yield recorder
    finally:
        leave(token)
        recorder.end()


@contextlib.contextmanager
def session(name: str, **attributes: Any) -> Iterator[Session]:
    """A named stage: what is recorded inside belongs to it; the innermost counts. Without a trace its id is empty."""
    scope = current.get()
    if scope.recorder is None:
        yield Session("", name)
        return
    made = scope.recorder.add_session(name, attributes)
    token = current.set(scope._replace(session=made.id))
    try:
        yield made
    finally:
        leave(token)


def variable(
    value: Any, *, name: str, kind: str = "value", previous: Variable | str | None = None, **attributes: Any
) -> Variable:
    """Take down a value that no operation made, such as a message or a prompt.

    Without a trace the variable has no id and holds `value` itself.
    """
    scope = current.get()
    if scope.recorder is None:
        return Variable("", name, kind, value, attributes=attributes)
    return scope.recorder.add_variable(value, name, kind, previous, attributes, scope.session)


def current_operation() -> ActiveOperation | None:
    """The innermost operation that runs in this context; None outside of any, and without a trace."""
    return current.get().operation


def current_recorder() -> Recorder | None:
    """The recorder of the innermost trace of this context, or None."""
    return current.get().recorder
