"""The requests of a program's own client while memtune runs it: with other prompts, by way of the run's gateway."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from tracing.errors import MemorySystemError, MemtuneError
from tracing.instrument.library_calls import recorded_elsewhere

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess
    from tracing.llm.models import ChatReply
    from tracing.llm.serving.gateway import Attached

_MARK = "_memtune_redirects"
_SERVED = ("/chat/completions", "/embeddings")
_ASKING = ("/responses", "/completions", "/v1/messages")

Replied = Callable[["ChatReply"], None]


class Running(Protocol):
    """What runs a program: it says what a request becomes, and records it.

    Attributes:
        access: the models that are asked.
        failures: of calls; the program may swallow the errors of its client.
    """

    access: ModelAccess
    failures: list[MemtuneError]

    def asking(self, texts: list[str]) -> contextlib.AbstractContextManager[tuple[list[str], Replied]]:
        """Around a request to a chat model: its texts with the prompts of the candidate, and what takes the reply."""
        ...


RUNNING: ContextVar[Running | None] = ContextVar("memtune_running_program", default=None)


def redirect_clients() -> None:
    """Let the clients of the openai package ask the run's models, wherever a program of `RUNNING` uses them.

    It is put around what is there, so it holds with other recordings of a client, and it is done again where one of
    them has restored the original.
    """
    import openai

    classes: list[Any] = [openai.OpenAI, openai.AsyncOpenAI]
    with contextlib.suppress(ModuleNotFoundError):
        import anthropic

        classes += [anthropic.Anthropic, anthropic.AsyncAnthropic]
    for kind in classes:
        if not hasattr(kind.request, _MARK):
            kind.request = _redirected(kind.request)


def _redirected(original: Any) -> Any:
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def request_async(client: Any, cast_to: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
            with _sent(options) as changed:
                return await original(client, cast_to, changed, *args, **kwargs)

        wrapped: Any = request_async
    else:

        @functools.wraps(original)
        def request(client: Any, cast_to: Any, options: Any, *args: Any, **kwargs: Any) -> Any:
            with _sent(options) as changed:
                return original(client, cast_to, changed, *args, **kwargs)

        wrapped = request
    setattr(wrapped, _MARK, True)
    return wrapped


@contextlib.contextmanager
def _sent(options: Any) -> Iterator[Any]:
    """Around a request: its options as they are sent."""
    running, body = RUNNING.get(), options.json_data
    path = next((path for path in _SERVED if options.url.endswith(path)), None)
    if running is None or not isinstance(body, Mapping):
        yield options
    elif path == "/embeddings":
        with _to_gateway(running, options, path, dict(body)) as (changed, _):
            yield changed
    elif path is not None:
        body = copy.deepcopy(dict(body))
        places = list(_places(body["messages"]))
        with running.asking([str(holder[key]) for holder, key in places]) as (texts, replied):
            for (holder, key), text in zip(places, texts, strict=True):
                holder[key] = text
            with _to_gateway(running, options, path, body) as (changed, attached):
                yield changed
            for reply in attached.replies[-1:]:
                replied(reply)
    elif options.url.endswith(_ASKING):
        raise MemorySystemError(
            f"the program asks its model by {options.url}; memtune passes on the openai package's chat completions only"
        )
    else:
        yield options


@contextlib.contextmanager
def _to_gateway(running: Running, options: Any, path: str, body: dict[str, Any]) -> Iterator[tuple[Any, Attached]]:
    gateway = running.access.gateway()
    model = running.access.embedding if path == "/embeddings" else running.access.task
    with gateway.attached() as attached, recorded_elsewhere():
        headers = options.headers if isinstance(options.headers, Mapping) else {}
        changed = copy.copy(options)
        changed.url = f"{gateway.base_url}{path}"
        changed.headers = {**headers, **attached.headers, "Authorization": f"Bearer {gateway.key}"}
        changed.json_data = {**body, "model": model.settings.model}
        try:
            yield changed, attached
        finally:
            running.failures += attached.failures


def _places(messages: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Where the texts of messages are: what holds each, and under which key."""
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            yield message, "content"
        for part in content if isinstance(content, list) else ():
            if isinstance(part.get("text"), str):
                yield part, "text"
