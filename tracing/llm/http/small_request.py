"""The small request before a run, from which is learnt what an endpoint takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tracing.llm.capabilities import LEARNT, Capabilities
from tracing.llm.http.bodies import read_chat, read_vectors
from tracing.llm.http.usage import MOST_TOKENS

_HELLO = [{"role": "user", "content": "hello"}]
_SMALL_FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "reply",
        "schema": {"type": "object", "properties": {"reply": {"type": "string"}}, "required": ["reply"]},
    },
}
"""As strict as the forms that systems ask for."""
Post = Callable[[str, Mapping[str, Any]], bytes]
"""Gives the answer to a request at a path, in the form that the endpoint takes."""


def try_embedding(post: Post, capabilities: Capabilities, own: Mapping[str, Any]) -> None:
    """Learn from a small request for an embedding what the endpoint takes; raises as `post` and `bodies`.

    Args:
        own: the model, and further fields of every request.
    """
    request = {"input": ["hello"], "encoding_format": "float", **own}
    raw = post("/embeddings", request)
    capabilities.note(tried=tuple(name for name in request if name in LEARNT))
    capabilities.note(usage=not read_vectors(raw, 1).tokens.estimated)


def try_chat(
    post: Post, capabilities: Capabilities, own: Mapping[str, Any], *, temperature: float, alternatives: int
) -> None:
    """Learn from a small chat request what the endpoint takes; raises as `post` and `bodies`.

    Args:
        own: the model, and further fields of every request.
        temperature: the usual one.
        alternatives: how many first tokens to ask for with their log-probabilities.
    """
    usual = {"response_format": _SMALL_FORMAT, "temperature": temperature, "seed": 0}
    logprobs = {"logprobs": True, "top_logprobs": alternatives} if alternatives else {}
    request = {"messages": _HELLO, "max_tokens": 16, **usual, **logprobs, **own}
    raw = post("/chat/completions", request)
    capabilities.note(tried=tuple(name for name in request if name in LEARNT))
    reply = read_chat(raw, most_tokens=MOST_TOKENS, alternatives=bool(alternatives))
    capabilities.note(usage=not reply.tokens.estimated)
    if reply.thinking or reply.thinking_tokens:
        capabilities.learn_thinking()
    if alternatives and reply.text and not reply.first_token:
        capabilities.note(without=(*capabilities.accepted.without, *logprobs))
