"""Operations while they run: the context manager `operation` and the decorator `traced`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import Token
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

from tracing.elements import Link, Operation, Variable
from tracing.errors import TraceError
from tracing.redaction import redact
from tracing.scope import Scope, current, leave
from tracing.snapshot import snapshot

if TYPE_CHECKING:
    from tracing.recorder import Recorder

P = ParamSpec("P")
R = TypeVar("R")
_NONE: Mapping[str, Any] = MappingProxyType({})


class ActiveOperation:
    """An operation while it runs, made by `operation`: a context manager that takes down its inputs on entering.

    Its methods may be called from several threads. Without a trace they record nothing.

    Raises:
        TraceError: it is entered twice, or given inputs, outputs or attributes after it has ended.
    """

    __slots__ = ("_attributes", "_entered", "_inputs", "_kind", "_name", "_operation", "_recorder", "_token")

    def __init__(self, name: str, kind: str, inputs: Iterable[tuple[str, Any]], attributes: Mapping[str, Any]) -> None:
        self._name, self._kind, self._inputs, self._attributes = name, kind, inputs, attributes
        self._entered = False
        self._recorder: Recorder | None = None
        self._operation: Operation | None = None
        self._token: Token[Scope] | None = None

    def __enter__(self) -> Self:
        if self._entered:
            raise TraceError(f"operation {self._name} is entered a second time; call operation(…) for each execution")
        self._entered = True
        scope = current.get()
        recorder = scope.recorder
        if recorder is None:
            return self
        links = tuple((role, recorder.read(role, value, scope.session).id) for role, value in self._inputs)
        attributes = snapshot(self._attributes)
        with recorder.lock:
            opened = Operation(
                id=recorder.next_id("o"),
                name=redact(self._name),
                kind=self._kind,
                inputs=links,
                parent=scope.operation.id if scope.operation is not None else None,
                session=scope.session,
                started=recorder.clock(),
                attributes=attributes,
            )
            recorder.graph.add_operation(opened)
        self._recorder, self._operation = recorder, opened
        self._token = current.set(scope._replace(operation=self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._recorder is None or self._operation is None or self._token is None:
            return
        leave(self._token)
        with self._recorder.lock:
            if self._recorder.ended:
                return  # it is in the file as open: the trace was left before it
            self._operation.ended = self._recorder.clock()
            self._operation.status = "ok" if error is None else "error"
            self._operation.error = None if error is None else _in_words(error)
            self._recorder.write(self._operation)

    @property
    def id(self) -> str:
        """Its id; empty without a trace."""
        return self._operation.id if self._operation is not None else ""

    @property
    def outputs(self) -> list[Variable]:
        """The variables it has made so far, in order; none without a trace."""
        if self._recorder is None or self._operation is None:
            return []
        return [self._recorder.graph.variables[vid] for vid in self._operation.output_ids()]

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
        if self._recorder is None:
            if isinstance(value, Variable):
                return value
            return Variable("", name or role, kind, value, attributes=attributes)
        recorder = self._recorder
        in_session = self._running().session
        made = recorder.known(value) if isinstance(value, Variable) else None
        if made is None:
            content = value.value if isinstance(value, Variable) else value
            before = previous if previous is not None else recorder.earlier_version(content)
            made = recorder.add_variable(content, name or role, kind, before, attributes, in_session)
        with recorder.lock:
            recorder.graph.add_links(self._running(), outputs=((role, made.id),))
        return made

    def use(self, role: str, value: Any) -> None:
        """Take down an input that became known inside; `value` as one of `operation`'s inputs."""
        if self._recorder is None:
            return
        recorder, in_session = self._recorder, self._running().session
        links: tuple[Link, ...] = tuple((role, recorder.read(role, one, in_session).id) for one in _each(value))
        with self._recorder.lock:
            self._recorder.graph.add_links(self._running(), inputs=links)

    def annotate(self, **attributes: Any) -> None:
        """Add attributes; the latest value of a key stands."""
        if self._recorder is None:
            return
        facts = snapshot(attributes)
        with self._recorder.lock:
            self._running().attributes.update(facts)

    def record_call(
        self, *, model: str, prompt_tokens: int = 0, completion_tokens: int = 0, cost: float = 0.0, cached: bool = False
    ) -> None:
        """Count a call to a model. One that comes back after the operation has ended is not counted."""
        if self._recorder is None or self._operation is None:
            return
        with self._recorder.lock:
            running = self._operation
            if running.status != "open" or self._recorder.ended:
                return
            running.model = redact(model)
            running.calls += 1
            running.cached_calls += int(cached)
            running.prompt_tokens += prompt_tokens
            running.completion_tokens += completion_tokens
            running.cost += cost

    def _running(self) -> Operation:
        running = cast(Operation, self._operation)
        if running.status != "open":
            raise TraceError(f"operation {running.id} ({running.name}) has ended; record what belongs to it inside it")
        return running

    def finish(self, result: Any) -> None:
        """Take down a return value as output "result"; what an operation inside this one made keeps its variable."""
        if self._recorder is None:
            return
        made = self._recorder.recall(result)
        if made is not None and self._recorder.unchanged(result, made) and self._made_inside(made):
            self.output("result", made)
        else:
            self.output("result", result)

    def _made_inside(self, made: Variable) -> bool:
        graph = cast("Recorder", self._recorder).graph
        for producer in graph.producers(made.id):
            parent = producer.parent
            while parent is not None and parent != self.id:
                parent = graph.operations[parent].parent if parent in graph.operations else None
            if parent is not None:
                return True
        return False


def operation(
    name: str, *, kind: str = "function", inputs: Mapping[str, Any] = _NONE, **attributes: Any
) -> ActiveOperation:
    """`with operation(…) as op:` records one executed step, its times, and the exception that leaves it, if any.

    Args:
        name: what is executed; the same for every execution of one step.
        kind: "llm", "function" or another word for how it works.
        inputs: by role a variable, a plain value, or a list or tuple in which variables stand: that is one input an
            element, and none if it is empty. A plain value is linked to the latest variable of that same object.
        attributes: further facts.
    """
    return ActiveOperation(
        name, kind, ((role, one) for role, given in inputs.items() for one in _each(given)), attributes
    )


def traced(name: str | None = None, kind: str = "function") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: record each call of a plain or async function as an operation, arguments as inputs by parameter name.

    Arguments are taken down before the call, `self` and `cls` left out; the return value is the output "result".

    Raises:
        TraceError: the function is a generator.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TraceError(f"{function.__qualname__} is a generator; record its steps inside it with `operation`")
        title = name or function.__name__
        signature = inspect.signature(function)

        def begun(*args: P.args, **kwargs: P.kwargs) -> ActiveOperation | None:
            if current.get().recorder is None:
                return None
            try:
                arguments = signature.bind(*args, **kwargs).arguments
            except TypeError:
                return None  # the call itself will raise it, with the usual message
            return ActiveOperation(title, kind, _by_parameter(signature, arguments), _NONE)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def recorded_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                active = begun(*args, **kwargs)
                if active is None:
                    return await function(*args, **kwargs)
                with active:
                    result = await function(*args, **kwargs)
                    active.finish(result)
                    return result

            return cast(Callable[P, R], recorded_async)

        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            active = begun(*args, **kwargs)
            if active is None:
                return function(*args, **kwargs)
            with active:
                result = function(*args, **kwargs)
                active.finish(result)
                return result

        return recorded

    return decorate


def _each(given: Any) -> Iterable[Any]:
    """The inputs that stand for one role."""
    if isinstance(given, list | tuple) and (not given or any(isinstance(one, Variable) for one in given)):
        return given
    return (given,)


def _by_parameter(signature: inspect.Signature, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for position, (name, value) in enumerate(arguments.items()):
        how = signature.parameters[name].kind
        if how is inspect.Parameter.VAR_KEYWORD:
            for key, one in value.items():
                yield from ((key, each) for each in _each(one) or (one,))
        elif how is inspect.Parameter.VAR_POSITIONAL:
            yield from ((name, each) for one in value for each in _each(one) or (one,))
        elif position or name not in ("self", "cls"):
            yield from ((name, each) for each in _each(value) or (value,))


def _in_words(error: BaseException) -> str:
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be read)"
    return redact(f"{type(error).__name__}: {message}" if message else type(error).__name__)
