"""What is being recorded in the present context: the one piece of global state, a context variable."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar, Token, copy_context
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from tracing.errors import TraceError
from tracing.graph.elements import Operation, Variable
from tracing.graph.values import ATOMS, snapshot

if TYPE_CHECKING:
    from tracing.graph.execution_graph import ExecutionGraph
    from tracing.recording.redaction import Redaction

P = ParamSpec("P")
R = TypeVar("R")
NOTHING: Mapping[str, Any] = MappingProxyType({})
InputNote = tuple[str, Any, Any]
"""A role, the value that plays it, and its snapshot."""


class RecorderLike(Protocol):
    """What a scope and its operations need of the `Recorder` that they record into, which says what each does."""

    clock: Callable[[], float]
    lock: threading.RLock
    ended: bool
    redaction: Redaction
    parent: str | None
    note: Callable[[object], None]
    beside: dict[object, Any]

    @property
    def graph(self) -> ExecutionGraph: ...
    def settle(self) -> None: ...
    def late(self) -> TraceError: ...
    def own_variable(self, original: Variable) -> Variable | None: ...
    def take(
        self, notes: list[InputNote], role: str, value: Any, scope: Scope, *, whole: bool = False, fresh: bool = False
    ) -> None: ...
    def make(
        self,
        scope: Scope,
        role: str | None,
        value: Any,
        name: str,
        kind: str,
        previous: Variable | str | None,
        attributes: Mapping[str, Any],
    ) -> Variable: ...
    def state(self, scope: Scope, thing: Any, name: str, kind: str) -> Variable: ...
    def recalled(self, thing: Any) -> Variable | None: ...
    def add_input(self, running: RunningOperation, role: str, value: Any) -> None: ...
    def add_output(self, running: RunningOperation, role: str, output: Variable) -> None: ...
    def facts(self, attributes: Mapping[str, Any]) -> dict[str, Any]: ...


class Scope:
    """The recorder, the innermost running operation, the id of the innermost session, and inherited attributes."""

    __slots__ = ("_operation", "inherited", "recorder", "session")

    def __init__(
        self,
        recorder: RecorderLike | None = None,
        operation: RunningOperation | None = None,
        session: str | None = None,
        inherited: Mapping[str, Any] = NOTHING,
    ) -> None:
        self.recorder, self._operation, self.session, self.inherited = recorder, operation, session, inherited

    @property
    def operation(self) -> RunningOperation | None:
        return self._operation


class RunningOperation(Scope):
    """What is noted of an operation while it runs. It is a scope itself, so that entering one makes one object.

    Raises:
        TraceError: it is begun twice, or after the trace has ended.
    """

    __slots__ = (
        *("_inputs", "_token", "attributes", "ended", "error", "folded", "folds", "kind", "name"),
        *("outer", "overtaken", "record", "input_notes", "started"),
    )
    folded: bool

    def __init__(
        self, name: str, kind: str, inputs: Iterable[tuple[str, Any]], attributes: Mapping[str, Any], folds: bool
    ) -> None:
        # As little as possible: one is made for every execution, recorded or not.
        self.name = name
        self.kind = kind
        self._inputs = inputs
        self.attributes = attributes
        self.folds = folds
        self.recorder: RecorderLike | None = None
        self.record: Operation | None = None
        self.ended: float | None = None
        self.overtaken: Scope | None = None

    @property
    def operation(self) -> RunningOperation:
        return self

    @property
    def id(self) -> str:
        """Its id; empty without a trace. That of the operation that covers it, where one does."""
        record = self.settled()
        return record.id if record is not None else ""

    def settled(self) -> Operation | None:
        """Its operation in the graph; None without a trace."""
        if self.record is None and self.recorder is not None:
            self.recorder.settle()
        return self.record

    def begin(self, recorder: RecorderLike, scope: Scope, input_notes: Iterable[InputNote]) -> None:
        """Start here, with inputs that are recorded already, and without becoming the current operation."""
        if self.recorder is not None:
            raise TraceError(f"operation {self.name} is entered a second time; call operation(…) for each execution")
        self.recorder = recorder
        self.outer: Scope | None = scope
        self.session = scope.session
        self.inherited = scope.inherited
        self.input_notes = input_notes
        if self.attributes:
            self.attributes = snapshot(self.attributes)
        if recorder.ended:
            raise recorder.late()
        self.started = recorder.clock()
        recorder.note(self)
        if recorder.ended:
            raise recorder.late()  # it may have come too late to be settled

    def end(self, error: BaseException | None = None) -> None:
        """End what `begin` has started."""
        self.end_with(None if error is None else _in_words(error))

    def end_with(self, error: str | None) -> None:
        """As `end`, with the error in words."""
        recorder = self.recorder
        if recorder is None or recorder.ended:
            return  # it is in the file as open: the trace was left before it
        self.error = error
        self.ended = recorder.clock()
        recorder.note(self)

    def finish(self, result: Any) -> None:
        """Record a return value as output "result"; what an operation inside this one made keeps its variable."""
        self.passed("result", result)

    def passed(self, role: str, value: Any) -> None:
        """Record what is passed out, as `finish` does, in another role."""
        recorder = self.recorder
        if recorder is None or recorder.ended:
            return
        if type(value) in ATOMS:
            recorder.note((self, role, value, value))
            return
        notes: list[InputNote] = []
        recorder.take(notes, role, value, self, whole=True, fresh=True)
        for _, element, content in notes:
            recorder.note((self, role, element, content))


def _in_words(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be read)"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


SILENCE = Scope()
current: ContextVar[Scope] = ContextVar("memtune_scope", default=SILENCE)

if hasattr(os, "register_at_fork"):
    # A forked child would write into its parent's file and use the same ids again.
    os.register_at_fork(after_in_child=lambda: current.set(SILENCE))


def leave(scope: Scope, token: Token[Scope]) -> None:
    """Return from `scope`, and from what is still open inside it, to the one before it.

    Nothing happens where another trace has been entered since, as over the `yield` of a generator that holds an
    operation open, and in a foreign context (an async generator closed elsewhere), which has none before it.
    An operation that was left from inside another one, as such a generator leaves it, is not returned to.
    """
    innermost = current.get()
    if innermost.recorder is scope.recorder:
        try:
            current.reset(token)
        except ValueError:
            return
        before = current.get()
        if innermost is not scope and isinstance(scope, RunningOperation):
            scope.overtaken = before
        while isinstance(before, RunningOperation) and before.ended is not None and before.overtaken is not None:
            before = before.overtaken
            current.set(before)


@contextlib.contextmanager
def within(scope: Scope) -> Iterator[None]:
    """Make this the present scope for a while."""
    token = current.set(scope)
    try:
        yield
    finally:
        leave(scope, token)


def paused() -> contextlib.AbstractContextManager[None]:
    """`with paused():` records nothing of what happens inside, in whatever task or bound thread.

    Example:
        >>> with trace() as recorder, paused(), operation("check_health"):
        ...     pass
        >>> len(recorder.graph.operations)
        0
    """
    return within(SILENCE)


def bind(function: Callable[P, R]) -> Callable[P, R]:
    """`function` with the present context, for a thread: what `pool.map(bind(work), items)` records belongs here.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with trace() as recorder, ThreadPoolExecutor() as pool:
        ...     home = pool.submit(bind(variable), "Oslo", name="home").result()
        >>> home.id in recorder.graph.variables
        True
    """
    context = copy_context()

    @functools.wraps(function)
    def bound(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)  # one context cannot be entered by two threads at once

    return bound
