"""The requests of a program's own client while memtune runs it: with other prompts, by way of the run's gateway.

They are caught where they are sent, by httpx: so those of the openai and the anthropic package, of LiteLLM, and of what
uses them or asks by httpx itself. What asks a chat model by requests, urllib or boto3 is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.client
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from tracing.errors import MemorySystemError, MemtuneError
from tracing.instrument.patches import BINDING, Instrumentation, is_installed
from tracing.llm.http.sdk_client import RunClient

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess
    from tracing.llm.models import ChatReply

_LIBRARIES = ("httpx", "httpx2")
_SERVED = re.compile(r"(?:/chat/completions|/responses|/v1(/messages)|/embeddings)$")
_REFUSED = re.compile(
    r"(?:/completions|/count_tokens|:(?:stream)?generateContent|/api/(?:chat|generate))$", re.IGNORECASE
)
"""Other paths at which models are asked, and paid."""
_BEDROCK = re.compile(r"/model/[^/]+/(?:invoke|converse)[\w-]*$")
_ASKING = ("model", "contents")
"""What a body has one of that asks a model."""

_FORMS = ("tools", "response_format", "text")
"""What a body has beside its messages; a model reads the descriptions in them."""

Replied = Callable[["ChatReply"], None]


class Running(Protocol):
    """What runs a program: it says what a request becomes, and records it.

    Attributes:
        access: the models that are asked.
        failures: of calls; the program may swallow the errors of its client. late: of those after it has ended.
        caches: of its functions that have one.
        background: what it has begun beside.
        context: in which it runs.
    """

    access: ModelAccess
    failures: list[MemtuneError]
    late: list[MemtuneError]
    caches: dict[Any, Any]
    background: Any
    context: Context

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        ...

    def turn(self) -> contextlib.AbstractAsyncContextManager[Any]:
        """Around a request of a coroutine: one is made after the other, so that equal builds record equal graphs."""

    def asking(
        self, texts: list[str], described: list[str]
    ) -> contextlib.AbstractContextManager[tuple[list[str], Replied]]:
        """Around a request to a chat model: its texts with the prompts of the candidate, and what takes the reply.

        Args:
            texts: of its messages.
            described: of its tools and its schema; they come after the others.
        """


RUNNING: ContextVar[Running | None] = ContextVar("memtune_running_program", default=None)
ACTIVE: list[Running] = []
"""All that run now, for requests of threads that belong to none."""
REPLACED = Instrumentation()
"""Methods that are replaced once and for good: where no program runs they do as before."""
BINDING.append(RUNNING)  # a thread of the program without it would ask the program's own model


@dataclass(slots=True)
class _Sent:
    """A request of httpx as it is sent, with what else its client is told, and the response to it.

    One that is refused has its response before it is sent.
    """

    request: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    response: Any = None


def redirect_clients() -> None:
    """Let what asks by httpx ask the run's models, wherever a program of `RUNNING` uses it."""
    for module in (import_module(name) for name in _LIBRARIES if is_installed(name)):
        for kind in (module.Client, module.AsyncClient):
            REPLACED.replace(kind, "send", functools.partial(_redirected, module))
    REPLACED.replace(http.client.HTTPConnection, "putrequest", _refused)


def _refused(original: Any) -> Any:
    """For connections of the standard library, which requests, urllib3 and boto3 use too."""

    @functools.wraps(original)
    def putrequest(connection: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        running, path = RUNNING.get(), urlsplit(url).path
        served = _SERVED.search(path)
        chats = (served and not path.endswith("/embeddings")) or _REFUSED.search(path) or _BEDROCK.search(path)
        if running is not None and method == "POST" and chats:
            error = MemorySystemError(
                f"the program asks its model at {path} by a client without httpx, such as requests, urllib or boto3, "
                "whose requests are not seen; let it ask by the openai or anthropic package, LiteLLM or httpx"
            )
            getattr(running, "failures", []).append(error)
            raise error
        return original(connection, method, url, *args, **kwargs)

    return putrequest


def _redirected(module: Any, original: Any) -> Any:
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def send_async(client: Any, request: Any, **options: Any) -> Any:
            other = _from_elsewhere(client, request, module)
            if isinstance(other, Context):
                loop = asyncio.get_running_loop()
                return await loop.create_task(send_async(client, request, **options), context=other)
            if other is not None:
                return other
            async with _turn(request):
                with _sent(request, module) as sent:
                    if sent.response is None:
                        sent.response = await original(client, sent.request, **{**options, **sent.options})
            return sent.response

        return send_async

    @functools.wraps(original)
    def send(client: Any, request: Any, **options: Any) -> Any:
        other = _from_elsewhere(client, request, module)
        if isinstance(other, Context):
            return other.run(send, client, request, **options)
        if other is not None:
            return other
        with _sent(request, module) as sent:
            if sent.response is None:
                sent.response = original(client, sent.request, **{**options, **sent.options})
        return sent.response

    return send


def _from_elsewhere(client: Any, request: Any, module: Any) -> Any:
    """The response to a request that is not asked where it is made, or the context to ask it in; None for any other."""
    running = RUNNING.get()
    if (running is None and not ACTIVE) or _body(request) is None:
        return None
    if running is None:
        if isinstance(client, RunClient):
            return None
        active = ACTIVE[:]
        if len(active) == 1:
            return active[0].context.copy()
        problem = (
            "a thread of the program that began before asks its model, and it is not seen for which of the memories "
            "that are built or asked at once: memtune.system(…, alone=True)"
        )
    elif hasattr(running, "ask"):  # a process that passes on what it asks
        return running.ask(request, module)
    elif running.is_over:
        active = [running]
        problem = (
            "the program asks its model after the build or answer that this is for has returned; let `build` and "
            "`answer` wait for what the program does in the background"
        )
    else:
        return None
    error = MemorySystemError(problem)
    for each in active:
        (each.late if each.is_over else each.failures).append(error)
    return _refusal(module, request, error)


def _refusal(module: Any, request: Any, error: MemtuneError) -> Any:
    told = {"error": {"message": str(error), "type": type(error).__name__}}
    return module.Response(400, headers={"x-should-retry": "false"}, json=told, request=request)


def _turn(request: Any) -> contextlib.AbstractAsyncContextManager[Any]:
    """Around a request of a coroutine; what gathers several asks a model one after the other, in their order."""
    running = RUNNING.get()
    return contextlib.nullcontext() if running is None or _body(request) is None else running.turn()


@contextlib.contextmanager
def _sent(request: Any, module: Any) -> Iterator[_Sent]:
    """Around a request: what memtune raises for it is a failure of the program, and a refusal to its client."""
    running, sent = RUNNING.get(), _Sent(request)
    body = _body(request) if running is not None else None
    if running is None or body is None:
        yield sent
        return
    # The gateway asks in a copy of this context, and its own requests are none of the program's.
    token = RUNNING.set(None)
    refusal: MemtuneError | None = None
    try:
        with (
            running.background.in_request(),
            _changed(running, request, module, body) as (sent.request, sent.options),
        ):
            yield sent
            sent.response.request = request  # clients look there for what they have asked for
    except MemtuneError as error:
        running.failures.append(error)
        refusal = error
    finally:
        RUNNING.reset(token)
    if refusal is not None and sent.response is None:
        sent.response = _refusal(module, request, refusal)
        yield sent


def _body(request: Any) -> dict[str, Any] | None:
    """The body of a request that asks a model; None of any other."""
    if request.method != "POST":
        return None
    try:
        body = json.loads(request.content)
    except (ValueError, RuntimeError):  # it is sent in pieces
        return None
    return body if isinstance(body, dict) and any(key in body for key in _ASKING) else None


@contextlib.contextmanager
def _changed(running: Running, request: Any, module: Any, body: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Around a request: what is sent in its place, and how."""
    served = _SERVED.search(request.url.path)
    if served is None:
        if _REFUSED.search(request.url.path):
            raise MemorySystemError(
                f"the program asks its model by {request.url.path}; memtune passes on chat completions, the Responses "
                "API and Anthropic's Messages. Let it ask by one of these while it is tuned: most servers have one"
            )
        yield request, {}
        return
    gateway, path = running.access.gateway(), served[1] or served[0]
    asking: contextlib.AbstractContextManager[tuple[list[str], Replied]]
    if path == "/embeddings":
        model: Any = running.access.embedding
        places, asking = [], contextlib.nullcontext(([], lambda _: None))
    else:
        model, messages = running.access.task, list(_places(body))
        descriptions = list(_descriptions([body.get(name) for name in _FORMS]))
        texts_of = ([holder[key] for holder, key in held] for held in (messages, descriptions))
        places, asking = messages + descriptions, running.asking(*texts_of)
    with asking as (texts, replied):
        for (holder, key), text in zip(places, texts, strict=True):
            holder[key] = text
        body["model"] = model.settings.model
        with gateway.attached() as attached:
            # The keys of the program go nowhere, and the gateway answers or refuses in time.
            headers = {**attached.headers, "Authorization": f"Bearer {gateway.key}"}
            waits = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"))}
            url = f"{gateway.base_url}{path}"
            yield module.Request("POST", url, headers=headers, json=body, extensions=waits), {"auth": None}
        if attached.failures:
            raise attached.failures[-1]
        for reply in attached.replies[-1:]:
            replied(reply)


def _places(body: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Where the texts of a request are: what holds each, and under which key."""
    for name in ("system", "instructions", "input", "messages"):
        held = body.get(name)
        if isinstance(held, str):
            yield body, name
        for part in held if isinstance(held, list) else ():
            content = part.get("content", [part])
            if isinstance(content, str):
                yield part, "content"
            for piece in content if isinstance(content, list) else ():
                if isinstance(piece.get("text"), str):
                    yield piece, "text"


def _descriptions(value: Any) -> Iterator[tuple[Any, Any]]:
    """Where the descriptions of tools, of a schema and of its fields are: what holds each, and under which key."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key == "description" and isinstance(inner, str):
            yield value, key
        else:
            yield from _descriptions(inner)
