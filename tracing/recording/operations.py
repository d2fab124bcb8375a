"""Operations while they run: the context managers `operation` and `change`, the decorator `traced`, and `link`.

What happens on the way is only noted here, as cheaply as can be; the recorder settles the notes when somebody looks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import Token
from math import isfinite
from typing import Any, ParamSpec, Self, TypeVar

from tracing.errors import TraceError
from tracing.graph.elements import Variable, noted_variable
from tracing.graph.values import ATOMS
from tracing.recording.scope import NOTHING, InputNote, RecorderLike, RunningOperation, Scope, current, leave
from tracing.recording.wrapping import wrapped_in

P = ParamSpec("P")
R = TypeVar("R")

ESTIMATED_CALLS = "estimated_calls"
"""Attribute of an operation: how many of its calls have tokens that their endpoint did not tell."""


class ActiveOperation(RunningOperation):
    """An operation while it runs, made by `operation`: a context manager that records its inputs on entering.

    Its methods may be called from several threads. Without a trace they record nothing.

    Raises:
        TraceError: it is entered twice, or given inputs, outputs or attributes after it has ended; in a strict trace,
            an input was changed without being recorded.

    Example:
        >>> with trace() as recorder, operation("answer", kind="llm") as op:
        ...     reply = op.output("prediction", "Oslo", kind="prediction")
        ...     op.record_call(model="my-model", prompt_tokens=210, completion_tokens=2)
        >>> recorder.graph.operations[op.id].prompt_tokens
        210
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        scope = current.get()
        recorder = scope.recorder
        if recorder is not None:
            input_notes: list[InputNote] = []
            for role, value in self._inputs:
                if type(value) in ATOMS:
                    input_notes.append((role, value, value))
                else:
                    recorder.take(input_notes, role, value, scope)
            self.begin(recorder, scope, input_notes)
            self._token: Token[Scope] = current.set(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        recorder = self.recorder
        if recorder is not None and not recorder.ended:  # the end of a trace has left the scopes inside it
            leave(self, self._token)
            self.end(error)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """As a decorator it records each call of a function: see `traced`."""
        if callable(self.name):
            raise TypeError(f'write @operation("name") above {getattr(self.name, "__name__", self.name)}')
        wrapped: Callable[P, R] = wrapped_in(type(self), function, self.name, self.kind, self.attributes, self.folds)
        return wrapped

    @property
    def outputs(self) -> list[Variable]:
        """The variables it has made so far, in order; none without a trace."""
        if self.recorder is None:
            return []
        graph = self.recorder.graph  # which brings the record up to date
        return [] if self.record is None else [graph.variables[vid] for vid in self.record.output_ids()]

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
        """Record an output and return its variable: a new one, unless the value is a Variable already.

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
            variable = noted_variable(recorder)
            recorder.note((variable, self, role, value, value, name or role, kind, None, NOTHING))
            return variable
        self._require_open(recorder)
        if isinstance(value, Variable):
            own_variable = recorder.own_variable(value)
            if own_variable is not None:
                recorder.add_output(self, role, own_variable)
                return own_variable
            value = value.value
        return recorder.make(self, role, value, name or role, kind, previous, attributes)

    def use(self, role: str, value: Any) -> None:
        """Record an input that became known inside; `value` as one of `operation`'s inputs."""
        recorder = self.recorder
        if recorder is None:
            return
        self._require_open(recorder)
        recorder.add_input(self, role, value)

    def annotate(self, **attributes: Any) -> None:
        """Add attributes; the latest value of a key counts."""
        recorder = self.recorder
        if recorder is None:
            return
        self._require_open(recorder)
        with recorder.lock:
            record = self.settled()
            if record is not None:
                record.attributes.update(recorder.facts(attributes))

    def record_call(
        self,
        *,
        model: str,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        cost: float = 0.0,
        cached: bool = False,
        estimated: bool = False,
    ) -> None:
        """Count a call to a model. One that comes back after the operation has ended is not counted.

        `estimated` says that its endpoint did not tell its tokens: the attribute `estimated_calls` counts such calls.
        """
        recorder = self.recorder
        if recorder is None:
            return
        with recorder.lock:
            record = self.settled()
            if record is None or self.ended is not None or record.status != "open" or recorder.ended:
                return
            record.model = recorder.redaction.text(model)
            record.calls += 1
            record.cached_calls += int(cached)
            record.prompt_tokens += prompt_tokens
            record.completion_tokens += completion_tokens
            record.cost += cost if isfinite(cost) else 0.0
            if estimated:
                record.attributes[ESTIMATED_CALLS] = record.attributes.get(ESTIMATED_CALLS, 0) + 1

    def _require_open(self, recorder: RecorderLike) -> None:
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
        inputs: by role a variable, a plain value, or a list or tuple with variables in it, each element of which is
            one input; an empty one is none. A plain value is linked to the latest variable of that same object.
        fold: record the steps inside as parts of this one operation: what they read from outside are its inputs, what
            they make are its outputs, their calls count for it, and its attribute `steps` lists their names.
        attributes: further facts.

    Example:
        >>> with trace() as recorder:
        ...     with operation("answer", kind="llm", inputs={"question": "Where does Mara live?"}) as op:
        ...         reply = op.output("prediction", "Oslo", kind="prediction")
        >>> recorder.graph.producers(reply.id)[0].kind
        'llm'
    """
    return ActiveOperation(name, kind, inputs.items(), attributes, fold)


def traced(
    name: str | None = None, kind: str = "function", *, fold: bool = False, **attributes: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: record each call of a function as an operation, arguments as inputs by parameter name.

    For plain, async, generator and async-generator functions. Arguments are recorded before the body runs, `self` and
    `cls` left out; the return value is the output "result". What a generator yields are outputs "item"; its operation
    begins with the first item asked for and ends when it is exhausted, closed, or left by an exception. What a plain
    function returns to be run later, a coroutine or a generator, is recorded likewise, and the operation ends with it;
    of a future the result is, once it is there.
    What is called in one trace and run in another is recorded in the first while that is open, and then not at all.

    Args:
        name: of the operation; the function's by default.
        kind, fold, attributes: see `operation`.

    Raises:
        TypeError: it was used without brackets.

    Example:
        >>> @traced(kind="retrieval")
        ... def search(query, limit=3):
        ...     return ["Mara lives in Oslo."]
        >>> with trace() as recorder:
        ...     memories = search("Where does Mara live?")
        >>> [step.name for step in recorder.graph.find_operations(kind="retrieval")]
        ['search']
    """
    if not (name is None or isinstance(name, str)):
        raise TypeError(f"write @traced() with its brackets above {getattr(name, '__name__', name)}")

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        wrapped: Callable[P, R] = wrapped_in(ActiveOperation, function, name, kind, attributes, fold)
        return wrapped

    return decorate


@contextlib.contextmanager
def change(
    thing: Any, *, name: str = "state", kind: str = "value", by: str = "change", **attributes: Any
) -> Iterator[ActiveOperation]:
    """Record what happens to `thing` inside as one operation: its state before is the input, that after the output.

    The output is a new version of the input, and the latest variable of the object from then on. Where nothing has
    changed there is no output. An exception is recorded, with what had changed by then, and raised again.

    Args:
        thing: an object that can change in place.
        name: of the variable, if the object was not recorded before.
        kind: likewise.
        by: name of the operation.
        attributes: of the operation.

    Example:
        >>> store = {"home": "Lima"}
        >>> with trace() as recorder, change(store, name="store", kind="memory_entry", by="update_memory"):
        ...     store["home"] = "Oslo"
        >>> [version.value for version in recorder.graph.find_variables(name="store")]
        [{'home': 'Lima'}, {'home': 'Oslo'}]
    """
    with operation(by, kind="change", **attributes) as op:
        recorder = op.recorder
        if recorder is None:
            yield op
            return
        before = recorder.state(op, thing, name, kind)
        op.use("before", before)
        try:
            yield op
        finally:
            if not recorder.ended:
                after = recorder.state(op, thing, name, kind)
                if after is not before:
                    op.output("after", after)


def link(source: Any, target: Any, name: str = "link", **attributes: Any) -> None:
    """Record that `target` comes from `source`, where no recorded step shows it.

    Args:
        source, target: variables, or objects that were recorded as such; others become variables.
        name: of the operation, of kind "link", between the two.
        attributes: of that operation.

    Example:
        >>> with trace() as recorder:
        ...     rumour, entry = variable("Mara moved", name="rumour"), variable("Oslo", name="home")
        ...     link(rumour, entry, name="because")
        >>> recorder.graph.producers(entry.id)[0].name
        'because'
    """
    with operation(name, kind="link", inputs={"source": source}, **attributes) as op:
        if op.recorder is not None:
            op.output("target", op.recorder.state(op, target, "target", "value"))
