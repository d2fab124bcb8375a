"""Calls of the openai package, and of anthropic, which is built alike, as part of the operation that makes them."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from tracing.instrument.library_calls import ModelCall, asked_by_library
from tracing.instrument.patches import Instrumentation, ResultHandler, recorded
from tracing.instrument.program_steps import step_here
from tracing.interchange.thinking import split_thinking
from tracing.recording.operations import ActiveOperation
from tracing.recording.recorder import Recorder, open_recorder
from tracing.recording.scope import NOTHING

Price = tuple[float, float]
"""The price of a million prompt tokens and of a million completion tokens, in any one currency."""

KINDS = {
    "/chat/completions": ("chat", "messages"),
    "/responses": ("respond", "input"),
    "/embeddings": ("embed", "input"),
    "/completions": ("complete", "prompt"),
    "/v1/messages": ("chat", "messages"),
}
"""End of an endpoint's path → name of the operation, and the key of the request's content."""


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

    return _of_clients((sdk.OpenAI, sdk.AsyncOpenAI), client, prices)


def anthropic(client: Any = None, *, prices: Mapping[str, Price] = NOTHING) -> Instrumentation:
    """Record every call of the Anthropic SDK as `openai` does those of its own; a `system` text is the first message.

    Example:
        >>> with instrument.anthropic(client), trace("run.jsonl") as recorder:  # doctest: +SKIP
        ...     client.messages.create(model="my-model", max_tokens=40, messages=messages)
    """
    import anthropic as sdk

    return _of_clients((sdk.Anthropic, sdk.AsyncAnthropic), client, prices)


def _of_clients(classes: tuple[Any, ...], client: Any, prices: Mapping[str, Price]) -> Instrumentation:
    instrumentation = Instrumentation()
    for owner in classes if client is None else (client,):
        instrumentation.replace(owner, "request", recorded(functools.partial(_requested, client, prices)))
    return instrumentation


@contextmanager
def _requested(
    client: Any, prices: Mapping[str, Price], recorder: Recorder, *args: Any, **kwargs: Any
) -> Iterator[ResultHandler]:
    """Around the `request` of a client, which every resource of it uses."""
    sender, positional = (client, args) if client is not None else (args[0], args[1:])
    call = _begin_call(sender, kwargs["options"] if "options" in kwargs else positional[1], prices)
    if call is None:
        yield lambda _: None
        return

    def on_result(reply: Any) -> None:
        reply = _parsed(reply) if kwargs.get("stream") else reply
        if not kwargs.get("stream") or not hasattr(reply, "_iterator"):
            call.replied(reply)
        elif isinstance(reply, AsyncIterable):
            _follow_async(reply, call)
        else:
            _follow(reply, call)

    with _failing(call):
        yield on_result


@contextmanager
def _failing(call: ClientCall) -> Iterator[None]:
    try:
        yield
    except GeneratorExit:
        raise
    except BaseException as error:
        call.failed(error)
        raise


@contextmanager
def _read(call: ClientCall) -> Iterator[None]:
    """The call ends with its stream, however that ends."""
    try:
        with _failing(call):
            yield
    finally:
        call.complete()


def _follow(stream: Any, call: ClientCall) -> None:
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


def _follow_async(stream: Any, call: ClientCall) -> None:
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


def _begin_call(client: Any, options: Any, prices: Mapping[str, Price]) -> ClientCall | None:
    """Record a request; None if nothing is recorded, something else records it, or no model is asked."""
    body = options.json_data
    if (
        open_recorder() is None
        or not isinstance(body, Mapping)
        or is_by_gateway(options.headers, client.default_headers)
        or asked_by_library()
    ):
        return None
    for path, (name, key) in KINDS.items():
        if options.url.partition("?")[0].endswith(path):
            if body.get("system"):
                system = {"role": "system", "content": body["system"]}
                body = {**{word: value for word, value in body.items() if word != "system"}, key: [system, *body[key]]}
            return ClientCall(name, key, body, prices)
    return None


def is_by_gateway(*headers: Any) -> bool:
    """Whether a request goes to the gateway of a run, which records it."""
    from tracing.llm.serving.gateway import CALL_HEADER

    return any(CALL_HEADER in given for given in headers if isinstance(given, Mapping))


class ClientCall(ModelCall):
    """A call that belongs to the step or operation that runs, or is an operation itself if none does."""

    def __init__(self, name: str, key: str, body: Mapping[str, Any], prices: Mapping[str, Price]) -> None:
        super().__init__(step_here(), [], str(body.get("model", "")), name=name)
        self._prices = prices
        settings = {word: value for word, value in body.items() if word != key and not callable(value)}
        op = self._step.operation("llm")
        self._request = self.recorder.make(op, None, body.get(key), "request", "request", None, settings)
        op.use("request", self._request)
        self._chunks: list[Any] = []

    def received(self, chunk: Any) -> None:
        """A piece of a streamed reply arrived."""
        self._chunks.append(chunk)

    def complete(self) -> None:
        """A streamed reply ended, or its rest is not wanted."""
        self.replied(_assembled(self._chunks))

    def replied(self, reply: Any) -> None:
        """The reply arrived."""
        if self.over or self.recorder.ended:
            return
        reply = _parsed(reply)
        read, written, cost = _usage(reply)
        if not cost and self._model in self._prices:
            price_in, price_out = self._prices[self._model]
            cost = (read * price_in + written * price_out) / 1e6
        value, facts = _content(reply)
        message = getattr((getattr(reply, "choices", None) or [None])[0], "message", None)
        elsewhere = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
        thinking = elsewhere if isinstance(elsewhere, str) else ""
        if isinstance(value, str):
            answer, thought = split_thinking(value)
            # Where nothing was thought, it stays the object that the caller gets.
            value, thinking = (answer, "\n".join(filter(None, (thinking, thought)))) if thought else (value, thinking)
        self.answered(
            value if isinstance(value, str) else "",
            value,
            model=str(getattr(reply, "model", None) or ""),
            read=read,
            written=written,
            cost=cost,
            facts=facts,
            thinking=thinking,
        )

    def _operation(self) -> ActiveOperation:
        step = self._step
        op = super()._operation()
        if self._step is not step:
            op.use("request", self._request)
        return op


def _parsed(reply: Any) -> Any:
    """The reply in a raw response; None if reading it would consume it before the caller does."""
    if hasattr(reply, "http_response") and hasattr(reply, "parse"):
        return reply.parse() if type(reply).__name__ == "LegacyAPIResponse" else None
    return reply


def _usage(reply: Any) -> tuple[int, int, float]:
    """Prompt tokens, completion tokens and cost, as far as the endpoint reports them."""
    usage = getattr(reply, "usage", None)

    def first(*names: str) -> Any:
        return next((count for name in names if (count := getattr(usage, name, None)) is not None), 0)

    read, written = first("prompt_tokens", "input_tokens"), first("completion_tokens", "output_tokens")
    cost = first("cost")
    return int(read), int(written), float(cost) if isinstance(cost, int | float) else 0.0


def _content(reply: Any) -> tuple[Any, dict[str, Any]]:
    """The content of the reply (for a single text, the same object that the caller gets), and facts about it."""
    if getattr(reply, "output_text", None):
        return reply.output_text, {}
    content = getattr(reply, "content", None)
    blocks = [block for block in content if "thinking" not in block.type] if isinstance(content, list) else []
    if [block.type for block in blocks] == ["text"]:
        return blocks[0].text, {"finish_reason": reply.stop_reason}
    first = next(iter(getattr(reply, "data", None) or []), None)
    vector = first.get("embedding") if isinstance(first, Mapping) else getattr(first, "embedding", None)
    if vector is not None:
        return {"embeddings": len(reply.data), "dimensions": len(vector) if isinstance(vector, list) else None}, {}
    choices = getattr(reply, "choices", None) or []
    if len(choices) == 1:
        choice = choices[0]
        message = getattr(choice, "message", None)
        text = getattr(message, "content", None) if message is not None else getattr(choice, "text", None)
        facts = {"finish_reason": choice.finish_reason}
        if isinstance(text, str) and not getattr(message, "tool_calls", None):
            return text, facts
    return _plain(reply), {}


def _plain(reply: Any) -> Any:
    return reply.model_dump(mode="json", exclude_none=True) if hasattr(reply, "model_dump") else reply


class _Assembled:
    """A reply assembled from the pieces of a stream."""

    def __init__(self) -> None:
        self.model: str | None = None
        self.usage: Any = None
        self.choices: list[_Choice] = []

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"choices": [choice.model_dump() for choice in self.choices]}


class _Choice:
    """One of the choices of a streamed reply, and at the same time its message."""

    def __init__(self) -> None:
        self.content = self.reasoning = ""
        self.tool_calls: dict[int, dict[str, str]] = {}
        self.finish_reason: str | None = None

    @property
    def message(self) -> _Choice:
        return self

    def add(self, piece: Any) -> None:
        delta = getattr(piece, "delta", None)
        texts = (delta, "content"), (delta, "text"), (piece, "text")
        said = next((text for owner, name in texts if (text := getattr(owner, name, None))), "")
        self.content += said if isinstance(said, str) else "".join(_texts_of(said))
        self.reasoning += getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None) or ""
        for part in getattr(delta, "tool_calls", None) or []:
            call = self.tool_calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
            call["id"] += part.id or ""
            for key in ("name", "arguments"):
                call[key] += getattr(part.function, key, None) or ""
        self.finish_reason = getattr(piece, "finish_reason", None) or self.finish_reason

    def add_block(self, event: Any) -> None:
        """An event about a block of one of Anthropic's messages, which all are parts of one reply."""
        block, delta = getattr(event, "content_block", None), getattr(event, "delta", None)
        if block is not None and block.type == "tool_use":
            self.tool_calls[event.index] = {"id": block.id, "name": block.name, "arguments": ""}
        self.content += getattr(delta, "text", None) or ""
        self.reasoning += getattr(delta, "thinking", None) or ""
        if event.index in self.tool_calls:
            self.tool_calls[event.index]["arguments"] += getattr(delta, "partial_json", None) or ""

    def model_dump(self) -> dict[str, Any]:
        calls = [self.tool_calls[place] for place in sorted(self.tool_calls)]
        message = {"content": self.content, "tool_calls": calls, "finish_reason": self.finish_reason}
        return {key: value for key, value in message.items() if value}


_ENDS = ("completed", "incomplete", "failed")
"""How the last event of a response is called."""


def _texts_of(parts: Any) -> Iterator[str]:
    """The texts among the parts of a content."""
    for part in parts if isinstance(parts, list | tuple) else ():
        text = part.get("text") if isinstance(part, Mapping) else getattr(part, "text", None)
        if isinstance(text, str):
            yield text


def _assembled(chunks: list[Any]) -> Any:
    whole = _Assembled()
    choices: dict[int, _Choice] = {}
    read: int | None = None
    for chunk in chunks:
        if getattr(chunk, "response", None) is not None and str(getattr(chunk, "type", "")).endswith(_ENDS):
            return chunk.response
        whole.model = getattr(chunk, "model", None) or whole.model
        whole.usage = getattr(chunk, "usage", None) or whole.usage
        message = getattr(chunk, "message", None)  # of anthropic, whose texts come as deltas of their own
        whole.model = getattr(message, "model", None) or whole.model
        read = getattr(getattr(message, "usage", None), "input_tokens", None) or read
        kind = str(getattr(chunk, "type", ""))
        if kind.startswith("content_block_"):
            choices.setdefault(0, _Choice()).add_block(chunk)
        elif kind == "message_delta":
            choices.setdefault(0, _Choice()).finish_reason = getattr(chunk.delta, "stop_reason", None)
        for piece in getattr(chunk, "choices", None) or []:
            choices.setdefault(getattr(piece, "index", 0), _Choice()).add(piece)
    if read is not None and not getattr(whole.usage, "input_tokens", None):
        # The first event tells what was read, the last what was written.
        whole.usage = SimpleNamespace(input_tokens=read, output_tokens=getattr(whole.usage, "output_tokens", None))
    whole.choices = [choices[place] for place in sorted(choices)] or [_Choice()]
    return whole
