"""The recorder: takes notes of what happens in a trace, and settles them into its graph."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from tracing.errors import TraceError
from tracing.files.records import RecordReader
from tracing.files.trace_file import records_of
from tracing.files.trace_lines import Record
from tracing.graph.elements import Element, Variable, noted_variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.values import ATOMS, UNCHANGING, snapshot
from tracing.recording.graph_builder import GraphBuilder
from tracing.recording.operations import ActiveOperation
from tracing.recording.redaction import Redaction
from tracing.recording.scope import NOTHING, SILENCE, InputNote, RunningOperation, Scope, current, within
from tracing.recording.trace_writer import TraceWriter


class Recorder:
    """Records sessions, variables and operations, in memory and (given a path) in an append-only file.

    While the program runs, things are only noted; they are settled into the graph when somebody looks at it, or by the
    thread that writes the file. All methods may be called from several threads. Ids are the prefix and a counter, so
    that one thread doing the same things under the same prefix gets the same ids. A recorded object is kept alive until
    the trace ends, so that its identity stays its own.

    Attributes:
        clock: gives epoch seconds.
        lock: held while the graph grows.
        ended: True once the trace was left; nothing can be recorded any more.
        strict: whether an object that was changed without being recorded may not come back as an input.
        redaction: what is taken out of all that is recorded.
        parent: id of the operation of another process that this recording goes on inside, or None.
        beside: what those who record a library keep with this recording, by a key of their own.
        path: of the file; None without one.

    Example:
        >>> with trace() as recorder:
        ...     message = variable("I moved to Oslo.", name="D1:1", kind="message")
        >>> [record["name"] for record in recorder.records()]
        ['D1:1']
    """

    def __init__(
        self,
        path: Path | None = None,
        prefix: str = "",
        clock: Callable[[], float] = time.time,
        *,
        strict: bool = False,
        redaction: Redaction | None = None,
        parent: str | None = None,
    ) -> None:
        self.clock, self.strict, self.redaction, self.parent = clock, strict, redaction or Redaction(), parent
        self.path = path
        self.lock = threading.RLock()
        self.ended = False
        self.beside: dict[object, Any] = {}
        self.builder = GraphBuilder(prefix, self.redaction, written=path is not None)
        self.note: Callable[[object], None] = self.builder.notes.append
        self._writer = TraceWriter(path, self.lock, self.settle, self.builder) if path is not None else None
        if self._writer is not None:
            self.note = self._writer.note

    @property
    def graph(self) -> ExecutionGraph:
        """What has been recorded so far. It grows in place; an operation that has not ended has status "open"."""
        self.settle()
        return self.builder.graph

    @property
    def lost(self) -> int:
        """Number of records that could not be written to the file, so far; the graph has them."""
        return self._writer.lost if self._writer is not None else 0

    def settle(self) -> None:
        """Bring the graph up to date."""
        with self.lock:  # another thread may be settling the last note
            if self.builder.notes:
                # A user's redaction function may be traced itself.
                with within(SILENCE):
                    self.builder.settle()
                    if self.ended:
                        self.builder.forget()

    def flush(self) -> None:
        """Return when all that is recorded so far is in the hands of the operating system, or counted as lost."""
        if self._writer is not None:
            self._writer.write()

    def records(self) -> list[Record]:
        """Everything recorded or adopted so far as JSON records, without the header; `adopt` takes them."""
        with self.lock:
            return records_of(self.graph)

    def adopt(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take over an earlier recording, so that operations can refer to its variables; it is written to the file too.

        Raises:
            TraceError: a record is malformed, refers to what does not come before it, or has an id that is taken; the
                trace has ended.
        """
        with self._taking_over() as reader:
            for record in records:
                if record.get("type") == "header" or self._returned(record):
                    continue
                cleaned = self._cleaned(record)
                item = reader.add(cleaned)
                if item is not None:
                    self.builder.skip_id(item.id)
                self.builder.written(dict(cleaned) if item is None else item)

    def adopt_elements(self, elements: Iterable[Element]) -> None:
        """Take over what another recorder with the same redaction has recorded, and which it does not keep.

        Raises:
            TraceError: an element refers to what does not come before it, or has an id that is taken; the trace has
                ended.
        """
        with self._taking_over() as reader:
            for element in elements:
                self.builder.skip_id(element.id)
                self.builder.written(reader.admit(element))

    @contextlib.contextmanager
    def _taking_over(self) -> Iterator[RecordReader]:
        with self.lock:
            if self.ended:
                raise self.late()
            yield RecordReader(self.graph)
        self.noticed()

    def _returned(self, record: Mapping[str, Any]) -> bool:
        """True for a variable of this trace that a recording of another process had taken over."""
        own_variable = self.builder.graph.variables.get(str(record.get("id")))
        return (
            own_variable is not None
            and record.get("type") == "variable"
            and record.get("previous") is None
            and record.get("session") is None
            and record.get("value") == own_variable.value
        )

    def _cleaned(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A record as it may be recorded here; what another recorder took down has lost the usual secrets already."""
        if self.redaction == Redaction():
            return record
        texts = [key for key in ("name", "attributes", "error", "model") if key in record]
        cleaned = {key: self.redaction.value(record[key]) for key in texts}
        if "value" in record:
            cleaned["value"] = self.redaction.named(str(record.get("name")), record["value"])
        return {**record, **cleaned}

    def hand_over(self) -> dict[str, Any]:
        """What another process needs to record as part of this place: see `tracing.hand_over`."""
        scope = current.get()
        with self.lock:
            number = self.builder.next_id("p")
        running = scope.operation
        return {
            "prefix": f"{number}-",
            "operation": running.id if running is not None else self.parent,
            "session": scope.session,
            "attributes": dict(scope.inherited),
        }

    # --- called by operations --------------------------------------------------------------------------------------

    def make(
        self,
        scope: Scope,
        role: str | None,
        value: Any,
        name: str,
        kind: str,
        previous: Variable | str | None,
        attributes: Mapping[str, Any],
    ) -> Variable:
        """Note a new variable of this scope, an output of its operation if there is a role."""
        if self.ended:
            raise self.late()
        content = value if type(value) in ATOMS else snapshot(value)
        before = self._before(previous) if previous is not None else None
        noted = noted_variable(self)
        facts = snapshot(attributes) if attributes else NOTHING
        self.note((noted, scope, role, value, content, name, kind, before, facts))
        if self.ended:
            raise self.late()
        return noted

    def take(
        self, notes: list[InputNote], role: str, value: Any, scope: Scope, *, whole: bool = False, fresh: bool = False
    ) -> None:
        """Add the inputs of one role: one value, or each element of a list with variables in it.

        `whole` says that an empty list is a value too, `fresh` that a strict trace lets an object have changed.
        """
        if isinstance(value, Variable):
            own_variable = self.own_variable(value) or self.make(
                scope, None, value.value, value.name, value.kind, None, value.attributes
            )
            notes.append((role, own_variable, None))
        elif isinstance(value, list | tuple) and any(isinstance(element, Variable) for element in value):
            for element in value:
                self.take(notes, role, element, scope, whole=True, fresh=fresh)
        elif whole or value or not isinstance(value, list | tuple):
            content = snapshot(value)
            if self.strict and not fresh and not isinstance(value, UNCHANGING):
                self._refuse_change(role, value, content)
            notes.append((role, value, content))

    def state(self, scope: Scope, thing: Any, name: str, kind: str) -> Variable:
        """The variable of this object as it is now: the latest one, a new version of that, or its first."""
        if isinstance(thing, Variable):
            return self.own_variable(thing) or self.make(scope, None, thing.value, name, kind, None, thing.attributes)
        content = snapshot(thing)
        with self.lock:
            self.settle()
            latest = self.builder.recall(thing)
            if latest is None:
                return self.builder.add_variable(thing, content, name, kind, None, {}, scope)
            return self.builder.read(name, thing, content, scope)

    def recalled(self, thing: Any) -> Variable | None:
        """The latest variable of this very object, if it was recorded."""
        with self.lock:
            self.settle()
            return self.builder.recall(thing)

    def add_input(self, running: RunningOperation, role: str, value: Any) -> None:
        """Give an operation that runs a further input; `value` as one of `operation`'s inputs."""
        notes: list[InputNote] = []
        self.take(notes, role, value, running)
        with self.lock:
            self.settle()
            record = running.settled()
            links = [
                (role, self.builder.read(role, input_value, content, running).id)
                for role, input_value, content in notes
            ]
            if record is not None:
                self.builder.add_links(record, tuple(links), ())

    def add_output(self, running: RunningOperation, role: str, output: Variable) -> None:
        """Give an operation that runs a variable of this trace as a further output."""
        with self.lock:
            record = running.settled()
            if record is not None:
                self.builder.add_links(record, (), ((role, output.id),))

    def facts(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes as they may be recorded."""
        facts: dict[str, Any] = self.redaction.value(snapshot(dict(attributes)))
        return facts

    def own_variable(self, original: Variable) -> Variable | None:
        """The variable as this trace has it; see `GraphBuilder.own_variable`."""
        if original.noted_by(self):
            return original
        with self.lock:
            graph = self.graph
            return original if graph.variables.get(original.id) is original else self.builder.own_variable(original)

    def referred(self, vid: str) -> Variable | None:
        """The variable with this id: this trace's, or a reference to one of another trace; None without an id.

        Raises:
            TraceError: the trace has ended.
        """
        if not vid:
            return None
        with self.lock:
            if self.ended:
                raise self.late()
            self.settle()
            variable = self.builder.referred(vid)
        self.noticed()
        return variable

    def _before(self, previous: Variable | str) -> Variable | None:
        return self.own_variable(previous) if isinstance(previous, Variable) else self.referred(previous)

    def _refuse_change(self, role: str, value: Any, content: Any) -> None:
        with self.lock:
            self.settle()
            latest = self.builder.recall(value)
            if latest is not None and not self.builder.unchanged(value, content, latest):
                from tracing.graph.graph_comparison import value_diff

                difference = value_diff(latest.value, self.redaction.named(latest.name, content), "recorded", "now")
                raise TraceError(
                    f"input {role!r} is {latest.name!r} ({latest.id}), changed since it was recorded; record the "
                    f"change with `change(…)` or as an output:\n{difference}"
                )

    def noticed(self) -> None:
        """Let the writer know that there is something to write."""
        if self._writer is not None:
            self._writer.notice()

    def late(self) -> TraceError:
        """The error of what comes after the end."""
        return TraceError("the trace has ended; wait for threads and tasks before leaving `with trace(…)`")

    def end(self) -> None:
        """Write the operations that are still open, and close the file."""
        self.ended = True
        if self._writer is not None:
            try:
                with self.lock:
                    for item in self.graph.operations.values():
                        if item.status == "open":
                            self.builder.written(item)
            finally:
                self._writer.close()


def current_operation() -> ActiveOperation | None:
    """The innermost operation that runs in this context; None outside of any, and without a trace.

    Example:
        >>> with trace(), operation("retrieve", kind="retrieval"):
        ...     current_operation().name
        'retrieve'
    """
    return cast(ActiveOperation | None, current.get().operation)  # all that run are


def current_recorder() -> Recorder | None:
    """The recorder of the innermost trace of this context, or None.

    Example:
        >>> with trace() as recorder:
        ...     current_recorder() is recorder
        True
    """
    return cast(Recorder | None, current.get().recorder)  # a scope knows it as `RecorderLike` alone


def open_recorder() -> Recorder | None:
    """The recorder of the innermost trace of this context, if that has not ended."""
    recorder = current_recorder()
    return None if recorder is None or recorder.ended else recorder
