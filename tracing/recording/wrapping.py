"""Wrapping functions, so that every call of one is an operation: what `traced` and `@operation(…)` have in common."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from tracing.graph.values import ATOMS
from tracing.recording.scope import SILENCE, InputNote, RunningOperation, Scope, current, leave, within


def wrapped_in(
    operation: Callable[[str, str, tuple[()], Mapping[str, Any], bool], RunningOperation],
    function: Any,
    name: str | None,
    kind: str,
    attributes: Mapping[str, Any],
    fold: bool,
) -> Any:
    """`function`, each call of which is such an operation; `traced` says how it is recorded."""
    if isinstance(function, staticmethod | classmethod):
        inner = wrapped_in(operation, function.__func__, name, kind, attributes, fold)
        return type(function)(inner)
    named = getattr(function, "func", function)  # of a functools.partial
    title: str = name if isinstance(name, str) else getattr(named, "__name__", type(named).__name__)
    arguments = _Arguments(function)

    def begun(call_scope: Scope, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> RunningOperation | None:
        scope = current.get()
        if call_scope.recorder is not None and call_scope.recorder is not scope.recorder:
            if scope.recorder is None or call_scope.recorder.ended:
                return operation(title, kind, (), attributes, fold)  # without a recorder it is silent
            scope = call_scope
        recorder = scope.recorder
        if recorder is None:
            return None
        arguments_by_name = arguments.pairs(args, kwargs)
        if arguments_by_name is None:
            return None  # the call itself will raise it, with the usual message
        input_notes: list[InputNote] = []
        for role, value in arguments_by_name:
            if type(value) in ATOMS:
                input_notes.append((role, value, value))
            else:
                recorder.take(input_notes, role, value, scope, whole=True)
        active = operation(title, kind, (), attributes, fold)
        active.begin(recorder, scope, input_notes)
        return active

    return _wrapper(function, begun)


def _wrapper(function: Any, begun: Callable[..., RunningOperation | None]) -> Any:
    scope = current.get  # looked up once: it is all that a call costs where nothing is recorded

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        call_scope = scope()
        if call_scope.recorder is None or (active := begun(call_scope, args, kwargs)) is None:
            return function(*args, **kwargs)
        token = current.set(active)
        try:
            result = function(*args, **kwargs)
            if type(result) not in ATOMS and _comes_later(result, args, kwargs):
                leave(active, token)
                return _followed(active, result)
            active.finish(result)
        except BaseException as error:
            leave(active, token)
            active.end(error)
            raise
        leave(active, token)
        active.end()
        return result

    @functools.wraps(function)
    def items(call_scope: Scope, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Generator[Any, Any, Any]:
        active = begun(call_scope, args, kwargs)
        inner = function(*args, **kwargs)
        return (yield from (inner if active is None else _items(active, inner)))

    @functools.wraps(function)
    async def awaited(call_scope: Scope, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        active = begun(call_scope, args, kwargs)
        inner = function(*args, **kwargs)
        return await (inner if active is None else _awaited(active, inner))

    if inspect.isasyncgenfunction(function):
        return _deferred(function, _async_items(function, begun), inspect.CO_ASYNC_GENERATOR)
    if inspect.isgeneratorfunction(function):
        return _deferred(function, items, inspect.CO_GENERATOR)
    return _deferred(function, awaited, inspect.CO_COROUTINE) if inspect.iscoroutinefunction(function) else recorded


def _deferred(function: Any, run: Callable[..., Any], flag: int) -> Any:
    """Calls `run` with the scope of the call, since the body of `run` begins only later, and maybe elsewhere."""
    scope = current.get

    def called(*args: Any, **kwargs: Any) -> Any:
        return run(scope(), args, kwargs)

    # `inspect` still says what kind of function it is.
    called.__code__ = called.__code__.replace(co_flags=called.__code__.co_flags | flag)
    return functools.wraps(function)(called)


_UNBEGUN: Mapping[type, Callable[[Any], bool]] = {
    CoroutineType: lambda coroutine: inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED,
    GeneratorType: lambda generator: inspect.getgeneratorstate(generator) == inspect.GEN_CREATED,
    AsyncGeneratorType: lambda generator: generator.ag_frame is not None and not generator.ag_running,
}
"""What a plain function may return to be run later → whether it still is to be."""


def is_future(result: Any) -> bool:
    """Whether it is one of `concurrent.futures`, of asyncio, or of another library that is used as these are."""
    return hasattr(type(result), "add_done_callback")


def _futures(result: Any) -> list[Any]:
    """Those that a result is made of: itself, or all that a list, tuple or dict holds."""
    if type(result) in (list, tuple, dict):
        parts = result.values() if type(result) is dict else result
        return list(parts) if all(map(is_future, parts)) else []
    return [result] if is_future(result) else []


def _comes_later(result: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    if type(result) not in _UNBEGUN:
        return bool(_futures(result))
    # What came from elsewhere may be held there still, and must not be closed with what would follow it.
    passed_on = any(result is argument for argument in (*args, *kwargs.values()))
    return not passed_on and _UNBEGUN[type(result)](result)


def _followed(active: RunningOperation, result: Any) -> Any:
    """The same as `result`, and the operation ends with it."""
    if type(result) is GeneratorType:
        return _items(active, result)
    if type(result) is CoroutineType:
        return _awaited(active, result)
    if futures := _futures(result):
        return _until_done(active, result, futures)
    return _async_items(lambda: result, lambda scope, args, kwargs: active)(None, (), {})


def _until_done(active: RunningOperation, result: Any, futures: Sequence[Any]) -> Any:
    """The same result; the operation ends with what its futures have, before whoever waits for the last goes on."""
    values: dict[int, Any] = {}
    one_at_a_time = threading.Lock()

    def ended(at: int, error: BaseException | None, value: Any = None) -> None:
        with one_at_a_time:
            if active.ended is not None:
                return
            if error is None:
                values[at] = value
                if len(values) < len(futures):
                    return
                parts = [values[part] for part in range(len(futures))]
                if type(result) is dict:
                    active.finish(dict(zip(result, parts, strict=True)))
                else:
                    active.finish(parts if type(result) in (list, tuple) else value)
            active.end(error)

    for at, future in enumerate(futures):
        _when_done(future, functools.partial(ended, at))
    return result


def _when_done(future: Any, ended: Callable[..., None]) -> None:
    """Call `ended` with a future's error, and its result where there is none, once it is known."""

    def done(_: Any) -> None:
        # asyncio would take an error that is asked for as one that is seen to.
        error = None if future.cancelled() else getattr(future, "_exception", None)
        try:
            ended(error, future.result() if error is None else None)
        except BaseException as problem:
            ended(problem)

    if future.done():
        done(future)
        return
    if hasattr(future, "set_running_or_notify_cancel"):
        # Of threads and processes: what waits is woken before callbacks are called.
        set_result, set_exception = future.set_result, future.set_exception

        def with_result(result: Any) -> None:
            ended(None, result)
            set_result(result)

        def with_error(error: BaseException) -> None:
            ended(error)
            set_exception(error)

        future.set_result, future.set_exception = with_result, with_error
    future.add_done_callback(done)


async def _awaited(active: RunningOperation, inner: Awaitable[Any]) -> Any:
    scope = _scope(active)
    token = current.set(scope)
    try:
        result = await inner
        if futures := _futures(result):
            leave(scope, token)
            return _until_done(active, result, futures)
        active.finish(result)
    except BaseException as error:
        leave(scope, token)
        active.end(error)
        raise
    leave(scope, token)
    active.end()
    return result


def _async_items(
    function: Callable[..., AsyncGenerator[Any, Any]], begun: Callable[..., RunningOperation | None]
) -> Any:
    @functools.wraps(function)
    async def items_async(
        call_scope: Scope, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> AsyncGenerator[Any, Any]:
        active = begun(call_scope, args, kwargs)
        inner = function(*args, **kwargs)
        # `yield from` does not exist for these: items and exceptions are handed through one by one.
        step, problem = inner.asend(None), None
        try:
            while True:
                with _inside(active):
                    try:
                        item = await step
                    except StopAsyncIteration:
                        break
                _yielded(active, item)
                try:
                    step = inner.asend((yield item))
                except GeneratorExit:
                    with _inside(active):
                        await inner.aclose()
                    raise
                except BaseException as thrown:
                    step = inner.athrow(thrown)
        except GeneratorExit:
            raise
        except BaseException as error:
            problem = error
            raise
        finally:
            if active is not None:
                active.end(problem)

    return items_async


def _items(active: RunningOperation, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    resume: Callable[[], Any] = functools.partial(next, inner)
    problem: BaseException | None = None
    try:
        while True:
            with _inside(active):
                try:
                    item = resume()
                except StopIteration as stop:
                    if stop.value is not None:
                        active.finish(stop.value)
                    return stop.value
            _yielded(active, item)
            try:
                resume = functools.partial(inner.send, (yield item))
            except GeneratorExit:
                with _inside(active):
                    inner.close()
                raise
            except BaseException as thrown:
                resume = functools.partial(inner.throw, thrown)
    except GeneratorExit:
        raise
    except BaseException as error:
        problem = error
        raise
    finally:
        active.end(problem)


def _scope(active: RunningOperation) -> Scope:
    """Where a piece of it runs: in itself, or in silence where its trace has ended or is not the one it runs in."""
    return active if active.recorder is not None and not active.recorder.ended else SILENCE


def _inside(active: RunningOperation | None) -> AbstractContextManager[None]:
    return nullcontext() if active is None else within(_scope(active))


def _yielded(active: RunningOperation | None, item: Any) -> None:
    if active is not None:
        active.passed("item", item)


class _Arguments:
    """The arguments of a function's calls, by parameter name; `Signature.bind` takes longer than all the rest."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = inspect.signature(function)
        parameters = list(self._signature.parameters.values())
        self._simple = all(parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
        self._own = bool(parameters) and parameters[0].name in ("self", "cls")
        self._names = [parameter.name for parameter in parameters[self._own :]]
        self._required = sum(parameter.default is inspect.Parameter.empty for parameter in parameters)
        self._most = len(parameters)

    def pairs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterable[tuple[str, Any]] | None:
        """Name and value of each; None where they do not fit the function."""
        if self._simple and not kwargs and self._required <= len(args) <= self._most:
            return zip(self._names, args[1:] if self._own else args, strict=False)
        try:
            arguments = self._signature.bind(*args, **kwargs).arguments
        except TypeError:
            return None
        pairs: list[tuple[str, Any]] = []
        for name, value in list(arguments.items())[self._own :]:
            how = self._signature.parameters[name].kind
            if how is inspect.Parameter.VAR_KEYWORD:
                pairs += value.items()
            elif how is inspect.Parameter.VAR_POSITIONAL:
                pairs += [(name, argument) for argument in value]
            else:
                pairs.append((name, value))
        return pairs
