"""The gateway: a server on loopback, in the forms of OpenAI and of Anthropic, through which systems with their own
client use a `ModelAccess`, with its cache, budgets, metering and recording.

    with gateway.attached() as attached:
        client.chat.completions.create(…, extra_headers=attached.headers)

is part of the operation running here, whatever thread the client works in.
"""

from __future__ import annotations

import base64
import contextlib
import secrets
import threading
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from tracing.errors import BudgetExceededError, MemtuneError, ModelError
from tracing.llm.http.chat_requests import chat_messages, chat_options
from tracing.llm.models import ChatModel, ChatReply, EmbeddingModel
from tracing.llm.serving.dialects import DIALECTS, as_chat
from tracing.llm.serving.loopback import Events, LoopbackServer, RefusalError, Request, Route
from tracing.llm.threads import GivenUp
from tracing.recording.operations import operation
from tracing.recording.recorder import current_operation, current_recorder

R = TypeVar("R")

CALL_HEADER = "X-Memtune-Call"
"""Names the attachment a request belongs to."""

_NOT_OFFERED = ("functions", "logprobs", "audio", "modalities")
"""Fields that change the form of a reply; dropping them silently would mislead the system that sent them."""

_CHATTED = "chat.completion"
_NO_RETRY = {"x-should-retry": "false"}
"""The access has retried already; clients of the openai package respect this."""


class ServedModels(Protocol):
    """The models that a gateway serves, by role, as a `ModelAccess` has them."""

    task: ChatModel
    proposer: ChatModel
    judge: ChatModel
    embedding: EmbeddingModel


@dataclass(frozen=True, slots=True)
class Attached:
    """What the calls with these headers belong to.

    Attributes:
        headers: to be sent with each request.
        failures: errors of those calls, as the access raised them, in order; a system may swallow the errors of its
            client.
        replies: to those calls of chat models that succeeded, in order.
    """

    headers: Mapping[str, str]
    failures: list[MemtuneError] = field(default_factory=list)
    replies: list[ChatReply] = field(default_factory=list)
    _context: Context = field(default_factory=copy_context, repr=False)
    _schema: Mapping[str, Any] | None = None
    _query: bool = False

    def _run(self, call: Callable[[], R]) -> R:
        try:
            # A context cannot be entered by two threads at once.
            return self._context.copy().run(call)
        except MemtuneError as error:
            if self.headers:
                self.failures.append(error)
            status = 402 if isinstance(error, BudgetExceededError) else 502
            raise RefusalError(status, str(error), _NO_RETRY) from None
        except GivenUp:
            raise RefusalError(502, "the work that this call belongs to was given up", _NO_RETRY) from None


class Gateway(LoopbackServer):
    """Serves `/v1/chat/completions`, `/v1/responses` and Anthropic's `/v1/messages` (each also as a stream),
    `/v1/embeddings` and `/v1/models` to bearers of `key`.

    A chat request names the model of any role. `seed` is the number of an independent sample. A JSON reply that hits
    its token limit is an error; a text reply has that as its `finish_reason`. Fields that do not change the form of a
    reply (`top_p`, penalties, `user`) are not passed on, so that equal requests stay equal; others that do, as
    `logprobs`, are refused. Tools and calls of them pass as they are.
    """

    def __init__(self, served: ServedModels, *, port: int = 0, context: Context | None = None) -> None:
        """Bind the port without serving yet.

        Args:
            served: the models of all its roles.
            port: 0 takes a free one.
            context: of calls without a `CALL_HEADER`; by default one without trace, operation or watch. If it has a
                trace but no operation, each call is recorded as its own operation.

        Raises:
            ConfigError: the port is taken.
        """
        routes: dict[str, Route] = {
            "GET /v1/models": lambda request: self._models(),
            "POST /v1/chat/completions": self._chat,
            **{f"POST {path}": partial(self._translated, *forms) for path, forms in DIALECTS.items()},
            "POST /v1/embeddings": self._embed,
        }
        super().__init__("gateway", routes, port=port)
        self._served = served
        self._loose = Attached({}, _context=Context() if context is None else context)
        self._attached: dict[str, Attached] = {}
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def attached(self, *, schema: Mapping[str, Any] | None = None, query: bool = False) -> Iterator[Attached]:
        """While open, requests with its headers belong to the current operation, trace and watches.

        Args:
            schema: JSON schema that replaces `json_object` as the form of chat replies; the operation's attribute
                `reply_schema` records it.
            query: whether texts to embed search (True) or are searched, if the request does not say.
        """
        token = secrets.token_urlsafe(12)
        # A coroutine's client that nobody closes would, once it is collected, close what another client uses by then.
        attached = Attached({CALL_HEADER: token, "Connection": "close"}, _schema=schema, _query=query)
        with self._guard:
            self._attached[token] = attached
        try:
            yield attached
        finally:
            with self._guard:
                del self._attached[token]

    def _attachment(self, request: Request) -> Attached:
        token = request.headers.get(CALL_HEADER)
        if token is None:
            return self._loose
        with self._guard:
            if token not in self._attached:
                raise RefusalError(400, f"{CALL_HEADER}: the operation that this call belongs to has ended", _NO_RETRY)
            return self._attached[token]

    def _models(self) -> dict[str, Any]:
        names = [*self._chat_models(), self._served.embedding.settings.model]
        return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "memtune"} for name in names]}

    def _chat_models(self) -> dict[str, ChatModel]:
        roles = (self._served.judge, self._served.proposer, self._served.task)
        return {model.settings.model: model for model in roles}

    def _translated(
        self,
        whole: Callable[[ChatReply], dict[str, Any]],
        events: Callable[[ChatReply], list[dict[str, Any]]],
        request: Request,
    ) -> dict[str, Any] | Events:
        try:
            reply = self._replied(Request(as_chat(request.body), request.headers))
        except ModelError as error:
            raise RefusalError(400, str(error), _NO_RETRY) from None
        return Events(events(reply)) if request.body.get("stream") else whole(reply)

    def _chat(self, request: Request) -> dict[str, Any] | Events:
        reply = self._replied(request)
        if not request.body.get("stream"):
            return _as_completion(reply)
        return _as_events(reply, usage=bool((request.body.get("stream_options") or {}).get("include_usage")))

    def _replied(self, request: Request) -> ChatReply:
        body, attached = request.body, self._attachment(request)
        several = ["n"] if body.get("n", 1) not in (1, None) else []
        for name in [name for name in _NOT_OFFERED if body.get(name)] + several:
            raise RefusalError(400, f"{name}: not offered by this gateway; send the request without it", _NO_RETRY)
        models = self._chat_models()
        if body["model"] not in models:
            raise RefusalError(404, f"model {body['model']!r} is not served here; known: {', '.join(models)}")
        model = models[body["model"]]
        try:
            messages, options = chat_messages(body), chat_options(body)
        except ModelError as error:
            raise RefusalError(400, str(error), _NO_RETRY) from None
        replaced = options["json_object"] and attached._schema is not None
        if replaced:
            options |= {"schema": attached._schema, "json_object": False}
        tools = options["tools"]
        inputs = {"messages": messages, **({"tools": tools["tools"]} if tools else {})}

        def call() -> ChatReply:
            with _own_operation("chat", inputs) as record:
                running = current_operation()
                if replaced and running is not None:
                    running.annotate(reply_schema=dict(options["schema"]))
                reply = model.chat(messages, **options)
                record({"content": reply.text, "tool_calls": [*reply.tool_calls]} if reply.tool_calls else reply.text)
                return reply

        reply = attached._run(call)
        if attached.headers:
            attached.replies.append(reply)
        return reply

    def _embed(self, request: Request) -> dict[str, Any]:
        body, attached = request.body, self._attachment(request)
        model = self._served.embedding
        if body["model"] != model.settings.model:
            raise RefusalError(404, f"model {body['model']!r} makes no embeddings here; known: {model.settings.model}")
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if not all(isinstance(text, str) for text in texts):
            raise RefusalError(400, "input: must be a text or a list of texts", _NO_RETRY)
        query = body["input_type"] == "query" if "input_type" in body else attached._query

        def call() -> list[list[float]]:
            with _own_operation("embed", {"texts": texts}) as record:
                vectors = model.embed(texts, query=query)
                record(len(vectors))
                return vectors

        vectors = attached._run(call)
        if any(body.get("dimensions") not in (None, len(vector)) for vector in vectors):
            raise RefusalError(400, f"dimensions: {model.settings.model} has {len(vectors[0])}", _NO_RETRY)
        packed = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": number, "embedding": _packed(vector) if packed else vector}
            for number, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "model": model.settings.model, "data": data, "usage": usage}


@contextlib.contextmanager
def _own_operation(name: str, inputs: Mapping[str, Any]) -> Iterator[Callable[[Any], None]]:
    """Record an operation for a call made in a trace but outside any operation; otherwise do nothing."""
    if current_recorder() is None or current_operation() is not None:
        yield lambda result: None
        return
    with operation(name, kind="llm", inputs=inputs) as op:
        yield lambda result: op.finish(result)


def _usage(reply: ChatReply) -> dict[str, int]:
    read, written = reply.prompt_tokens, reply.completion_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _reply_fields(reply: ChatReply, *, numbered: bool = False) -> dict[str, Any]:
    """What a reply says and calls, as fields of a message, or of a stream's delta, where calls are numbered."""
    if not reply.tool_calls:
        return {"content": reply.text}
    calls = [{"index": at, **call} if numbered else dict(call) for at, call in enumerate(reply.tool_calls)]
    return {"content": reply.text or None, "tool_calls": calls}


def _finish_reason(reply: ChatReply) -> str:
    """Why a reply ended, in OpenAI's words alone, since its clients refuse others."""
    if reply.finish_reason == "filtered":
        return "content_filter"
    return reply.finish_reason if reply.finish_reason in ("length", "tool_calls", "function_call") else "stop"


def _as_completion(reply: ChatReply) -> dict[str, Any]:
    message = {"role": "assistant", **_reply_fields(reply)}
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply), "logprobs": None}
    base = {"id": f"{_CHATTED}-memtune", "object": _CHATTED, "created": 0, "model": reply.model}
    return {**base, "choices": [choice], "usage": _usage(reply)}


def _as_events(reply: ChatReply, *, usage: bool) -> Events:
    """The reply as the chunks of a stream; it comes in one piece, since whole replies are cached and metered."""
    base = {"id": f"{_CHATTED}-memtune", "object": f"{_CHATTED}.chunk", "created": 0, "model": reply.model}
    content_chunk = {
        "index": 0,
        "delta": {"role": "assistant", **_reply_fields(reply, numbered=True)},
        "finish_reason": None,
    }
    last_chunk = {"index": 0, "delta": {}, "finish_reason": _finish_reason(reply)}
    chunks = [{**base, "choices": [content_chunk]}, {**base, "choices": [last_chunk]}]
    return Events([*chunks, {**base, "choices": [], "usage": _usage(reply)}] if usage else chunks)


def _packed(vector: list[float]) -> str:
    return base64.b64encode(array("f", vector).tobytes()).decode()
