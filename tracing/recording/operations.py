"""Operations while they run: the context manager `operation`.

What happens on the way is only noted here, as cheaply as can be; the recorder settles the notes when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import Token
from math import isfinite
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from tracing.errors import TraceError
from tracing.graph.elements import Operation, Variable, noted_variable
from tracing.graph.values import ATOMS, snapshot
from tracing.recording.scope import NOTHING, Scope, current, leave

if TYPE_CHECKING:
    from tracing.recording.recorder import Recorder

P = ParamSpec("P")
R = TypeVar("R")
Taken = tuple[str, Any, Any]
"""A role, the value that plays it, and its snapshot."""


class ActiveOperation(Scope):
    """An operation while it runs, made by `operation`: a context manager that takes down its inputs on entering.

    Its methods may be called from several threads. Without a trace they record nothing.

    Raises:
        TraceError: it is entered twice, or given inputs, outputs or attributes after it has ended; in a strict trace,
            an input was changed without being recorded.
    """

    __slots__ = (
        *("_given", "_token", "attributes", "ended", "error", "folded", "folds", "kind", "name"),
        *("outer", "record", "started", "taken"),
    )
    folded: bool

    def __init__(
        self, name: str, kind: str, given: Iterable[tuple[str, Any]], attributes: Mapping[str, Any], folds: bool
    ) -> None:
        # As little as possible: one is made for every execution, recorded or not.
        self.name = name
        self.kind = kind
        self._given = given
        self.attributes = attributes
        self.folds = folds
        self.recorder: Recorder | None = None
        self.record: Operation | None = None
        self.ended: float | None = None

    @property
    def operation(self) -> ActiveOperation:
        return self

    def __enter__(self) -> Self:
        scope = current.get()
        recorder = scope.recorder
        if recorder is not None:
            taken: list[Taken] = []
            for role, value in self._given:
                if type(value) in ATOMS:
                    taken.append((role, value, value))
                else:
                    recorder.take(taken, role, value, scope)
            self.begin(recorder, scope, taken)
            self._token: Token[Scope] = current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        recorder = self.recorder
        if recorder is not None and not recorder.ended:  # the end of a trace has left the scopes inside it
            leave(self, self._token)
            self.end(error)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """As a decorator it records each call of a function: see `traced`."""
        from tracing.recording.decorator import traced

        if callable(self.name):
            raise TypeError(f'write @operation("name") above {getattr(self.name, "__name__", self.name)}')
        return traced(self.name, self.kind, fold=self.folds, **self.attributes)(function)

    def begin(self, recorder: Recorder, scope: Scope, taken: Iterable[Taken]) -> None:
        """Start here, with inputs taken down already, and without becoming the current operation."""
        if self.recorder is not None:
            raise TraceError(f"operation {self.name} is entered a second time; call operation(…) for each execution")
        self.recorder = recorder
        self.outer: Scope | None = scope
        self.session = scope.session
        self.inherited = scope.inherited
        self.taken = taken
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
        recorder = self.recorder
        if recorder is None or recorder.ended:
            return  # it is in the file as open: the trace was left before it
        self.error = None if error is None else _in_words(error)
        self.ended = recorder.clock()
        recorder.note(self)

    @property
    def id(self) -> str:
        """Its id; empty without a trace. That of the operation that covers it, where one does."""
        record = self._record()
        return record.id if record is not None else ""

    @property
    def outputs(self) -> list[Variable]:
        """The variables it has made so far, in order; none without a trace."""
        record = self._record()
        if record is None or self.recorder is None:
            return []
        return [self.recorder.graph.variables[vid] for vid in record.output_ids()]

    def output(
        self,
        role: str,
        value: Any,
        *,
        name: str | None = None,
        kind: str = "value",
        previous: Variable | str | None = None,
        **attributes: Any,
    ) -> Variable:
        """Take down an output and return its variable: a new one, but a Variable given as value is output as it is.

        An object that can change in place and was recorded before becomes a new version of that, unless `previous`
        says of what. Without a trace the variable has no id and holds `value` itself.
        """
        recorder = self.recorder
        if recorder is None:
            if isinstance(value, Variable):
                return value
            return Variable("", name or role, kind, value, attributes=attributes)
        if type(value) in ATOMS and previous is None and not attributes and not recorder.ended and self.ended is None:
            # What `make` does, for the most frequent case.
            made = noted_variable(recorder)
            recorder.note((made, self, role, value, value, name or role, kind, None, NOTHING))
            return made
        self._require_open(recorder)
        if isinstance(value, Variable):
            known = recorder.known(value)
            if known is not None:
                self._link(recorder, outputs=((role, known),))
                return known
            value = value.value
        return recorder.make(self, role, value, name or role, kind, previous, attributes)

    def use(self, role: str, value: Any) -> None:
        """Take down an input that became known inside; `value` as one of `operation`'s inputs."""
        recorder = self.recorder
        if recorder is None:
            return
        self._require_open(recorder)
        taken: list[Taken] = []
        recorder.take(taken, role, value, self)
        with recorder.lock:
            recorder.settle()
            links = [(role, recorder.chronicle.read(role, one, content, self)) for role, one, content in taken]
            self._link(recorder, inputs=links)

    def annotate(self, **attributes: Any) -> None:
        """Add attributes; the latest value of a key stands."""
        recorder = self.recorder
        if recorder is None:
            return
        self._require_open(recorder)
        with recorder.lock:
            record = self._record()
            if record is not None:
                record.attributes.update(recorder.chronicle.facts(attributes))

    def record_call(
        self, *, model: str, prompt_tokens: int = 0, completion_tokens: int = 0, cost: float = 0.0, cached: bool = False
    ) -> None:
        """Count a call to a model. One that comes back after the operation has ended is not counted."""
        recorder = self.recorder
        if recorder is None:
            return
        with recorder.lock:
            record = self._record()
            if record is None or self.ended is not None or record.status != "open" or recorder.ended:
                return
            record.model = recorder.redaction.text(model)
            record.calls += 1
            record.cached_calls += int(cached)
            record.prompt_tokens += prompt_tokens
            record.completion_tokens += completion_tokens
            record.cost += cost if isfinite(cost) else 0.0

    def finish(self, result: Any) -> None:
        """Take down a return value as output "result"; what an operation inside this one made keeps its variable."""
        self.passed("result", result)

    def passed(self, role: str, value: Any) -> None:
        """Take down what is passed out, as `finish` does, in another role."""
        recorder = self.recorder
        if recorder is None or recorder.ended:
            return
        if type(value) in ATOMS:
            recorder.note((self, role, value, value))
            return
        taken: list[Taken] = []
        recorder.take(taken, role, value, self, whole=True, fresh=True)
        for _, one, content in taken:
            recorder.note((self, role, one, content))

    def _record(self) -> Operation | None:
        if self.record is None and self.recorder is not None:
            self.recorder.settle()
        return self.record

    def _link(
        self,
        recorder: Recorder,
        inputs: Iterable[tuple[str, Variable]] = (),
        outputs: Iterable[tuple[str, Variable]] = (),
    ) -> None:
        with recorder.lock:
            record = self._record()
            if record is not None:
                recorder.chronicle.add_links(
                    record,
                    tuple((role, variable.id) for role, variable in inputs),
                    tuple((role, variable.id) for role, variable in outputs),
                )

    def _require_open(self, recorder: Recorder) -> None:
        if self.ended is not None:
            raise TraceError(f"operation {self.id} ({self.name}) has ended; record what belongs to it inside it")
        if recorder.ended:
            raise recorder.late()


def operation(
    name: str,
    *,
    kind: str = "function",
    inputs: Mapping[str, Any] = NOTHING,
    fold: bool = False,
    **attributes: Any,
) -> ActiveOperation:
    """`with operation(…) as op:` records one executed step, its times, and the exception that leaves it, if any.

    Args:
        name: what is executed; the same for every execution of one step.
        kind: "llm", "function" or another word for how it works.
        inputs: by role a variable, a plain value, or a list or tuple in which variables stand: that is one input an
            element, and none if it is empty. A plain value is linked to the latest variable of that same object.
        fold: record the steps inside as parts of this one operation: what they read from outside are its inputs, what
            they make are its outputs, their calls count for it, and its attribute `steps` lists their names.
        attributes: further facts.
    """
    return ActiveOperation(name, kind, inputs.items(), attributes, fold)


def _in_words(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be read)"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
