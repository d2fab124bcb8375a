"""Calls of the litellm package, whatever their provider, as part of the operation that makes them."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tracing.instrument.library_calls import asked_by_library, recorded_elsewhere
from tracing.instrument.openai_calls import KINDS, ClientCall, is_by_gateway
from tracing.instrument.patches import Instrumentation, ResultHandler, recorded, within_each
from tracing.recording.recorder import Recorder

_ASKS = {
    "completion": "/chat/completions",
    "acompletion": "/chat/completions",
    "responses": "/responses",
    "aresponses": "/responses",
    "embedding": "/embeddings",
    "aembedding": "/embeddings",
    "text_completion": "/completions",
    "atext_completion": "/completions",
}
"""Function → the endpoint of OpenAI's that it is like."""
_CALL = "_memtune_call"
_BESIDE = ("api_key", "client", "extra_headers", "headers", "metadata")
"""What is told beside a request and is none of it, or secret."""

_ACCESS = ("aws_", "azure_ad_", "vertex_")
"""How settings begin by which a provider is reached."""


def litellm() -> Instrumentation:
    """Record every call of LiteLLM as `openai` does those of its client: sync, async and streaming, of any provider.

    Functions that a module has imported from it by name are recorded too. The cost is what LiteLLM makes of it.

    Example:
        >>> with instrument.litellm(), trace("run.jsonl") as recorder:  # doctest: +SKIP
        ...     litellm.completion(model="anthropic/my-model", messages=messages)
    """
    import litellm as sdk

    instrumentation = Instrumentation()
    for name, path in _ASKS.items():
        function = getattr(sdk, name)
        signature = inspect.signature(function)
        around = functools.partial(_asked, instrumentation, signature, path)
        for module in [*sys.modules.values()]:
            if getattr(module, "__dict__", {}).get(name) is function:
                instrumentation.replace(module, name, recorded(around))
    return instrumentation


@contextmanager
def _asked(
    instrumentation: Instrumentation,
    signature: inspect.Signature,
    path: str,
    recorder: Recorder,
    *args: Any,
    **told: Any,
) -> Iterator[ResultHandler]:
    """Around a call; what LiteLLM asks by other functions of its own, or by a client, is a part of it."""
    body = {**signature.bind_partial(*args, **told).arguments}
    body |= body.pop("kwargs", {})
    is_ours = type(getattr(body.get("client"), "client", None)).__module__.startswith("tracing.llm.")
    if is_ours or asked_by_library() or is_by_gateway(body.get("extra_headers"), body.get("headers")):
        yield lambda _: None
        return
    name, key = KINDS[path]
    settings = {
        word: value
        for word, value in body.items()
        if word not in _BESIDE and not word.startswith(_ACCESS) and value is not None
    }
    call = ClientCall(name, key, settings, {})

    def on_result(reply: Any) -> None:
        if not body.get("stream"):
            call.replied(reply)
            return
        weakref.finalize(reply, call.complete)  # if its rest is not wanted
        for method in ("__next__", "__anext__"):
            if hasattr(type(reply), method):
                instrumentation.replace(type(reply), method, within_each(_reading))
        setattr(reply, _CALL, call)

    with recorded_elsewhere():
        try:
            yield on_result
        except BaseException as error:
            call.failed(error)
            raise


@contextmanager
def _reading(stream: Any) -> Iterator[ResultHandler]:
    """Around a step of a stream, sync or async; what it gives is a piece of the reply."""
    call: ClientCall | None = getattr(stream, _CALL, None)
    try:
        yield call.received if call is not None else lambda _: None
    except (StopIteration, StopAsyncIteration):
        if call is not None:
            call.complete()
        raise
    except BaseException as error:
        if call is not None:
            call.failed(error)
        raise
