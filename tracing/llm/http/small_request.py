"""The small request before a run, from which is learnt what an endpoint takes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracing.errors import MalformedReplyError
from tracing.llm.capabilities import LEARNT, Capabilities
from tracing.llm.http.bodies import MOST_TOKENS, read_chat, read_vectors
from tracing.llm.http.refusals import RefusedError

_HELLO = [{"role": "user", "content": "hello"}]
_SMALL_FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "reply",
        "schema": {"type": "object", "properties": {"reply": {"type": "string"}}, "required": ["reply"]},
    },
}
"""As strict as the forms that systems ask for."""
_MUTE_STATUS = frozenset({400, 422, 501})
"""With these a field may be refused without a word of it."""

Post = Callable[[str, Mapping[str, Any]], bytes]
"""Gives the answer to a request at a path, in the form that the endpoint takes."""


def try_embedding(post: Post, capabilities: Capabilities, own: Mapping[str, Any]) -> None:
    """Learn from a small request for an embedding what the endpoint takes; raises as `post`.

    Args:
        own: the model, and further fields of every request.
    """
    raw = _answer(post, capabilities, "/embeddings", {"input": ["hello"], **own}, [{"encoding_format": "float"}])
    with contextlib.suppress(MalformedReplyError):
        capabilities.note(usage=read_vectors(raw, 1).prompt_tokens > 0)


def try_chat(
    post: Post, capabilities: Capabilities, own: Mapping[str, Any], *, temperature: float, alternatives: int
) -> None:
    """Learn from a small chat request what the endpoint takes; raises as `post`.

    Args:
        own: the model, and further fields of every request.
        temperature: the usual one.
        alternatives: how many first tokens to ask for with their log-probabilities.
    """
    usual: list[dict[str, Any]] = [{"response_format": _SMALL_FORMAT}, {"temperature": temperature}, {"seed": 0}]
    logprobs = {"logprobs": True, "top_logprobs": alternatives}
    needed = {"messages": _HELLO, "max_tokens": 16, **own}
    raw = _answer(post, capabilities, "/chat/completions", needed, [*usual, logprobs] if alternatives else usual)
    with contextlib.suppress(MalformedReplyError):
        reply = read_chat(raw, most_tokens=MOST_TOKENS, alternatives=bool(alternatives))
        capabilities.note(usage=reply.prompt_tokens > 0)
        if reply.thinking or reply.thinking_tokens:
            capabilities.learn_thinking()
        if alternatives and reply.text and not reply.first_token:
            capabilities.do_without(*logprobs)


def _answer(
    post: Post, capabilities: Capabilities, path: str, needed: Mapping[str, Any], usual: Sequence[Mapping[str, Any]]
) -> bytes:
    """The answer to a request, without the usual fields that are refused; those of one mapping belong together."""
    whole = {**needed, **{name: value for fields in usual for name, value in fields.items()}}
    try:
        raw = post(path, whole)
    except RefusedError as refused:
        if refused.status not in _MUTE_STATUS or needed["model"] in str(refused):
            raise
        # It does not say which one; without any of them it has to answer.
        taken = dict(needed)
        raw = post(path, taken)
        for fields in usual:
            try:
                raw = post(path, {**taken, **fields})
                taken |= fields
            except RefusedError as answer:
                if answer.may_pass:
                    raise
                capabilities.do_without(*fields)
    capabilities.note(tried=tuple(name for name in whole if name in LEARNT))
    return raw
