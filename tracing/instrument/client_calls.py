"""A call to a model that is under way, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracing.instrument.library_calls import asked_by_library
from tracing.instrument.program_steps import step_here
from tracing.recording.operations import ActiveOperation
from tracing.recording.recorder import Recorder, current_recorder
from tracing.recording.scope import NOTHING, Scope, current

Price = tuple[float, float]
"""The price of a million prompt tokens and of a million completion tokens, in any one currency."""

_KINDS = {
    "/chat/completions": ("chat", "messages"),
    "/responses": ("respond", "input"),
    "/embeddings": ("embed", "input"),
    "/completions": ("complete", "prompt"),
}
"""End of an endpoint's path → name of the operation, and the key of the request's content."""


def begin_call(client: Any, options: Any, prices: Mapping[str, Price]) -> Call | None:
    """Record a request; None if nothing is recorded, something else records it, or no model is asked."""
    scope, recorder, body = current.get(), current_recorder(), options.json_data
    if recorder is None or recorder.ended or not isinstance(body, Mapping) or _by_gateway(client, options):
        return None
    if asked_by_library():
        return None
    for path, (name, key) in _KINDS.items():
        if options.url.endswith(path):
            return Call(recorder, scope, name, key, body, prices)
    return None


def _by_gateway(client: Any, options: Any) -> bool:
    from tracing.llm.serving.gateway import CALL_HEADER

    headers = options.headers if isinstance(options.headers, Mapping) else NOTHING
    return CALL_HEADER in headers or CALL_HEADER in client.default_headers


class Call:
    """A call that belongs to the step or operation that runs, or is an operation itself if none does."""

    def __init__(
        self,
        recorder: Recorder,
        scope: Scope,
        name: str,
        key: str,
        body: Mapping[str, Any],
        prices: Mapping[str, Price],
    ) -> None:
        self._recorder, self._scope, self._name, self._prices = recorder, scope, name, prices
        self._model = str(body.get("model", ""))
        self._step = step_here()
        self._own = self._step is None
        self._op = self._operation() if self._step is None else self._step.ask([])
        settings = {word: value for word, value in body.items() if word != key and not callable(value)}
        self._request = recorder.make(self._op, None, body.get(key), "request", "request", None, settings)
        self._op.use("request", self._request)
        self._chunks: list[Any] = []
        self._over = False

    def received(self, chunk: Any) -> None:
        """A piece of a streamed reply arrived."""
        self._chunks.append(chunk)

    def complete(self) -> None:
        """A streamed reply ended, or its rest is not wanted."""
        self.answered(_assembled(self._chunks))

    def answered(self, reply: Any) -> None:
        """The reply arrived."""
        if self._over or self._recorder.ended:
            return
        self._over = True
        reply = _parsed(reply)
        if self._op.ended is not None:  # a stream was read after the operation that asked for it
            self._own, self._op = True, self._operation()
            self._op.use("request", self._request)
        read, written, cost = _usage(reply)
        if not cost and self._model in self._prices:
            price_in, price_out = self._prices[self._model]
            cost = (read * price_in + written * price_out) / 1e6
        self._op.record_call(
            model=str(getattr(reply, "model", None) or self._model),
            prompt_tokens=read,
            completion_tokens=written,
            cost=cost,
        )
        value, facts = _content(reply)
        reply_variable = self._op.output("reply", value, kind="reply", **facts)
        if self._step is not None:
            self._step.replies.append((value if isinstance(value, str) else "", reply_variable))
        if self._own:
            self._op.end()

    def failed(self, error: BaseException) -> None:
        """The call raised."""
        if self._over or self._recorder.ended:
            return
        self._over = True
        if self._own:
            self._op.end(error)
        elif self._op.ended is None:
            with self._recorder.lock:
                before = self._recorder.graph.operations[self._op.id].attributes.get("failed_calls", [])
                self._op.annotate(failed_calls=[*before, f"{type(error).__name__}: {error}"])

    def _operation(self) -> ActiveOperation:
        operation = ActiveOperation(self._name, "llm", (), NOTHING, False)
        operation.begin(self._recorder, self._scope, [])
        return operation


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
    if getattr(reply, "data", None) and hasattr(reply.data[0], "embedding"):
        vector = reply.data[0].embedding
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
        self.content = ""
        self.tool_calls: dict[int, dict[str, str]] = {}
        self.finish_reason: str | None = None

    @property
    def message(self) -> _Choice:
        return self

    def add(self, piece: Any) -> None:
        delta = getattr(piece, "delta", None)
        self.content += (getattr(delta, "content", None) if delta is not None else getattr(piece, "text", None)) or ""
        for part in getattr(delta, "tool_calls", None) or []:
            call = self.tool_calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
            call["id"] += part.id or ""
            for key in ("name", "arguments"):
                call[key] += getattr(part.function, key, None) or ""
        self.finish_reason = getattr(piece, "finish_reason", None) or self.finish_reason

    def model_dump(self) -> dict[str, Any]:
        calls = [self.tool_calls[place] for place in sorted(self.tool_calls)]
        message = {"content": self.content, "tool_calls": calls, "finish_reason": self.finish_reason}
        return {key: value for key, value in message.items() if value}


def _assembled(chunks: list[Any]) -> Any:
    whole = _Assembled()
    choices: dict[int, _Choice] = {}
    for chunk in chunks:
        if getattr(chunk, "response", None) is not None and str(getattr(chunk, "type", "")).endswith("completed"):
            return chunk.response
        whole.model = getattr(chunk, "model", None) or whole.model
        whole.usage = getattr(chunk, "usage", None) or whole.usage
        for piece in getattr(chunk, "choices", None) or []:
            choices.setdefault(getattr(piece, "index", 0), _Choice()).add(piece)
    whole.choices = [choices[place] for place in sorted(choices)] or [_Choice()]
    return whole
