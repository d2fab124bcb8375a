"""Calls of the openai package, recorded as part of the operation that makes them."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import Any

from tracing.instrument.client_calls import Call, Price, begin_call
from tracing.instrument.patches import Instrumentation
from tracing.recording.scope import NOTHING


def openai(client: Any = None, *, prices: Mapping[str, Price] = NOTHING) -> Instrumentation:
    """Record every call of the OpenAI SDK as part of the current operation: sync, async and streaming, at any endpoint.

    The operation counts the call with its model, tokens and cost, and gets the request as input "request" and the
    reply as output "reply"; of embeddings only their number and size. A call outside any operation becomes its own
    operation, named chat, respond, complete or embed. Calls through memtune's own model access or gateway are recorded
    only there.

    Args:
        client: an `OpenAI` or `AsyncOpenAI`; without one, every present and future client, also those of libraries.
        prices: by model, the price of a million prompt and completion tokens; a cost that the endpoint reports wins.

    Returns:
        A context manager that undoes it, also with the method `undo`.

    Example:
        >>> with instrument.openai(client), trace("run.jsonl") as recorder:  # doctest: +SKIP
        ...     client.chat.completions.create(model="my-model", messages=messages)
        >>> recorder.graph.find_operations()[0].model  # doctest: +SKIP
        'my-model'
    """
    import openai as sdk

    instrumentation = Instrumentation()
    for owner in (sdk.OpenAI, sdk.AsyncOpenAI) if client is None else (client,):
        instrumentation.replace(owner, "request", functools.partial(_recorded, client, prices))
    return instrumentation


def _recorded(client: Any, prices: Mapping[str, Price], original: Any) -> Any:
    """`original` with recording; every resource of a client uses its `request`."""

    def begun(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call | None:
        sender, positional = (client, args) if client is not None else (args[0], args[1:])
        options = kwargs["options"] if "options" in kwargs else positional[1]
        return begin_call(sender, options, prices)

    if iscoroutinefunction(original):

        @functools.wraps(original)
        async def request_async(*args: Any, **kwargs: Any) -> Any:
            call = begun(args, kwargs)
            if call is None:
                return await original(*args, **kwargs)
            with _failing(call):
                reply = await original(*args, **kwargs)
            return _receive(call, reply, kwargs, _follow_async)

        return request_async

    @functools.wraps(original)
    def request(*args: Any, **kwargs: Any) -> Any:
        call = begun(args, kwargs)
        if call is None:
            return original(*args, **kwargs)
        with _failing(call):
            reply = original(*args, **kwargs)
        return _receive(call, reply, kwargs, _follow)

    return request


def _receive(call: Call, reply: Any, kwargs: Mapping[str, Any], follow: Callable[[Any, Call], None]) -> Any:
    if kwargs.get("stream") and hasattr(reply, "_iterator"):
        follow(reply, call)
    else:
        call.answered(reply)
    return reply


@contextmanager
def _failing(call: Call) -> Iterator[None]:
    try:
        yield
    except GeneratorExit:
        raise
    except BaseException as error:
        call.failed(error)
        raise


@contextmanager
def _read(call: Call) -> Iterator[None]:
    """The call ends with its stream, however that ends."""
    try:
        with _failing(call):
            yield
    finally:
        call.complete()


def _follow(stream: Any, call: Call) -> None:
    def items(inner: Iterator[Any]) -> Iterator[Any]:
        with _read(call):
            for item in inner:
                call.received(item)
                yield item

    followed, close = items(stream._iterator), stream.close
    stream._iterator = followed

    def closing() -> None:
        close()
        followed.close()  # type: ignore[attr-defined]

    stream.close = closing


def _follow_async(stream: Any, call: Call) -> None:
    async def items(inner: AsyncIterator[Any]) -> AsyncIterator[Any]:
        with _read(call):
            async for item in inner:
                call.received(item)
                yield item

    followed, close = items(stream._iterator), stream.close
    stream._iterator = followed

    async def closing() -> None:
        await close()
        await followed.aclose()  # type: ignore[attr-defined]

    stream.close = closing
