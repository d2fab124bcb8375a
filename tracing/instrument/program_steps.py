"""The steps of other people's programs: what each was given, found and made, so that nothing it uses loses its origin.

A library says when a step of it (the node of a graph, a tool, a chain) begins and ends, and when a model is asked in
it. A step is recorded as an operation once something happens in it. What it reads comes before what it makes: where it
reads again after it made something, as an agent does between two requests, a further execution of it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from tracing.graph.elements import Variable
from tracing.graph.values import has_identity
from tracing.recording.operations import ActiveOperation
from tracing.recording.recorder import Recorder, current_operation, current_recorder, open_recorder
from tracing.recording.scope import NOTHING, Scope, current, within
from tracing.recording.trace_context import variable
from tracing.temporary_values import context_with

Link = tuple[str, Variable]
"""A role, and the variable that plays it."""


class VariableRegistry:
    """The variables of one recording, by what their library knows them by: the id of a message, the key of a memory.

    Attributes:
        by_key: all that have a key.
        steps: by the identity of a user's operation, the step that it is.
        shows: by the identity of a variable that is known here, the contexts that its text shows.
    """

    def __init__(self) -> None:
        self.by_key: dict[Hashable, Variable] = {}
        self.steps: dict[int, Step] = {}
        self.shows: dict[int, list[Variable]] = {}
        self._objects: dict[int, tuple[object, Variable]] = {}

    def of(self, thing: object) -> Variable | None:
        """The variable of this very object."""
        entry = self._objects.get(id(thing))
        return entry[1] if entry is not None else None

    def keep(self, variable: Variable, *, key: Hashable = None, thing: object = None) -> Variable:
        """Know a variable again by a key, or by an object, which is kept alive with it."""
        if key is not None:
            self.by_key[key] = variable
        if thing is not None:
            self._objects[id(thing)] = (thing, variable)
        return variable


_FROM_OUTSIDE = ("message", "prompt", "query", "request")
_MESSAGE_KINDS = ("message", "reply", "fact", "context", "prediction")


def registry_of(recorder: Recorder) -> VariableRegistry:
    """What is known in this recording."""
    registry: VariableRegistry = recorder.beside.setdefault(VariableRegistry, VariableRegistry())
    return registry


class Step:
    """One step, recorded as soon as something happens in it.

    Args:
        name: of its operations.
        outer: the step that it is part of.
        running: the user's own operation, where that is the step; it begins and ends by itself.

    Attributes:
        recorder: of the trace that it began in.
        messages: those that it was handed; arguments: what else it was; contexts: what was retrieved in it.
        replies: of the models asked in its present execution, each with its text.
        streams: whether its answer is the reply that is still being read.
        over: whether it has ended.
    """

    def __init__(self, name: str, *, outer: Step | None = None, running: ActiveOperation | None = None) -> None:
        recorder = outer.recorder if outer is not None else current_recorder()
        assert recorder is not None  # noqa: S101 (steps are made only where something is recorded)
        self.name = name
        self.recorder: Recorder = recorder
        self.messages: list[Link] = []
        self.arguments: list[Link] = []
        self.contexts: list[Variable] = []
        self.replies: list[tuple[str, Variable]] = []
        self.streams = self.over = False
        self.began_in = scope_here()
        self._outer, self._own, self._op = outer, running is None, running
        self._read: set[tuple[str, int]] = set()

    @property
    def begun(self) -> bool:
        """Whether it is recorded already."""
        return self._op is not None

    @property
    def scope(self) -> Scope:
        """Where the steps inside it are recorded."""
        return self._op or (self._outer.scope if self._outer is not None else self.began_in)

    def operation(self, kind: str = "function") -> ActiveOperation:
        """Its present execution, which begins here if it has not yet."""
        if self._op is None or (self._own and not self.over and self._op.ended is not None):
            outside = self._outer.scope if self._outer is not None else self.began_in
            self._op = begun(self.name, kind, outside)
            self._read, self.replies = set(), []
        return self._op

    def read(self, links: Sequence[Link], kind: str = "function") -> ActiveOperation:
        """Its present execution, with these inputs; a further one if the present one has made something already.

        A user's own operation cannot be divided: once it has made something, only what surely was not made of that can
        still be an input of it.
        """
        op = self.operation(kind)
        if self.replies and not self._own:
            links = [link for link in links if link[1].kind in _FROM_OUTSIDE]
        elif self.replies and any((role, id(variable)) not in self._read for role, variable in links):
            op.end()
            op = self.operation(kind)
        for role, value in links:
            if (role, id(value)) not in self._read:
                self._read.add((role, id(value)))
                op.use(role, value)
        return op

    def ask(self, links: Sequence[Link]) -> ActiveOperation:
        """Its execution in which a model is asked with these, and with all it has.

        The messages are inputs one by one where the request holds some of them; else it quotes them in a text of its
        own, and all are.
        """
        linked_ids = {id(variable) for _, variable in links}
        quoted = [] if any(id(variable) in linked_ids for _, variable in self.messages) else self.messages
        return self.read([*links, *quoted, *(link for link in self.inputs() if id(link[1]) not in linked_ids)], "llm")

    def inputs(self) -> list[Link]:
        """All it has: what it was given, and what was retrieved in it."""
        return [*self.arguments, *(("context", context) for context in self.contexts)]

    def origins(self) -> list[Variable]:
        """What something written here came from, as far as anyone can tell: what models said, or what it was given."""
        return [reply for _, reply in self.replies] or [variable for _, variable in self.arguments or self.messages]

    def end(self, error: BaseException | None = None) -> None:
        """It is over."""
        if self.over or self.recorder.ended:
            return
        self.over = True
        if self._own and self._op is not None:
            self._op.end(error)


_OPEN_STEP: ContextVar[Step | None] = ContextVar("memtune_opened_step", default=None)
_RUNNING: list[Callable[[], Step | None]] = []
"""Each says which step of its library runs in the present context."""
_SURROUNDING: list[Callable[[], Scope | None]] = []
"""Each says which scope of its library the present context is in."""


def surrounding(say: Callable[[], Scope | None]) -> Callable[[], None]:
    """Ask this function too for the scope that is here; returns what ends that."""
    _SURROUNDING.append(say)
    return lambda: _SURROUNDING.remove(say)


def scope_here() -> Scope:
    """The innermost scope of the present context: one that a library is in, or that of the user's own operation."""
    return next((scope for say in _SURROUNDING if (scope := say()) is not None), current.get())


def running(say: Callable[[], Step | None]) -> Callable[[], None]:
    """Ask this function too for the step that runs; returns what ends that."""
    _RUNNING.append(say)
    return lambda: _RUNNING.remove(say)


@contextmanager
def step_scope(step: Step) -> Iterator[Step]:
    """Be in this step, and end it afterwards; what a library says of steps inside it is left out."""
    with ending(step), within_step(step):
        yield step


@contextmanager
def ending(step: Step) -> Iterator[None]:
    """End it with what happens inside."""
    try:
        yield
    except GeneratorExit:
        step.end()
        raise
    except BaseException as error:
        step.end(error)
        raise
    step.end()


def within_step(step: Step) -> AbstractContextManager[None]:
    """Be in this step for a while."""
    return context_with(_OPEN_STEP, step)


def opened_step() -> Step | None:
    """The step that was opened around here, if it still runs."""
    step = _OPEN_STEP.get()
    return step if step is not None and not step.over and step.recorder is current_recorder() else None


def step_here(run: Step | None = None) -> Step | None:
    """The innermost step of the present context: a user's operation, what was opened, or a library's step (`run`)."""
    recorder = open_recorder()
    if recorder is None:
        return None
    candidates = (
        candidate for candidate in (opened_step(), run, *(say() for say in _RUNNING)) if candidate is not None
    )
    step = next((candidate for candidate in candidates if not candidate.over and candidate.recorder is recorder), None)
    user = current_operation()
    if user is not None and user.ended is not None:
        user = None  # a task outlives the operation that it was started in
    if user is None or (step is not None and (step.began_in.operation is user or step.scope is user)):
        return step
    steps = registry_of(recorder).steps
    if id(user) not in steps:  # the step holds its operation, so that the id of that stays its own
        steps[id(user)] = Step(user.name, running=user)
    return steps[id(user)]


def begun(name: str, kind: str, scope: Scope, inputs: Iterable[Link] = ()) -> ActiveOperation:
    """An operation inside this scope, begun here."""
    operation, recorder = ActiveOperation(name, kind, (), NOTHING, False), scope.recorder
    assert recorder is not None  # noqa: S101 (see above)
    operation.begin(recorder, scope, [(role, variable, None) for role, variable in inputs])
    return operation


@contextmanager
def executed(name: str, kind: str, step: Step | None, inputs: Iterable[Link] = ()) -> Iterator[ActiveOperation]:
    """An operation of its own inside a step, current while it runs."""
    op = begun(name, kind, scope_here() if step is None else step.scope, inputs)
    try:
        with within(op):
            yield op
    except BaseException as error:
        op.end(error)
        raise
    op.end()


def recalled(recorder: Recorder, text: str) -> Variable | None:
    """The message or reply that this very text was recorded as."""
    if not has_identity(text):
        return None
    message = registry_of(recorder).of(text)
    if message is None:
        with recorder.lock:
            recorder.settle()
            message = recorder.builder.recall(text)
    return message if message is not None and message.kind in _MESSAGE_KINDS else None


def request_link(registry: VariableRegistry, step: str, text: str, speaker: str, *, is_prompt: bool) -> list[Link]:
    """A message of a request that was not recorded before: a prompt, which stays the same one, or a text as it is."""
    if is_prompt:
        key = ("prompt", step, text)
        prompt = registry.by_key.get(key) or registry.keep(variable(text, name=step, kind="prompt"), key=key)
        return [("prompt", prompt)]
    return [("request", variable(text, name=speaker, kind="request"))] if text else []


def strings_in(value: Any) -> Iterator[str]:
    """The texts in a value, as the objects they are."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for element in value.values():
            yield from strings_in(element)
    elif isinstance(value, list | tuple):
        for element in value:
            yield from strings_in(element)
