"""How many tokens a reply took: as its endpoint tells, in the ways in which endpoints do, or else estimated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tracing.llm.accounting.token_counts import TOKENS_A_MESSAGE, TokenCounts, estimated_tokens, texts_of

MOST_TOKENS = 100_000_000
"""A count of more tokens for one call is a mistake: the longest contexts have a tenth of it."""

_LONGEST_NUMBER = 20


def _whole_number(value: Any) -> Any:
    """A count as some proxies send it, as a float or a text."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < _LONGEST_NUMBER else value


Tokens = Annotated[int, BeforeValidator(_whole_number), Field(ge=0, le=MOST_TOKENS)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, hide_input_in_errors=True)

    cached_tokens: Tokens | None = None
    reasoning_tokens: Tokens | None = None


class ReportedUsage(_Part):
    """The field `usage` of an answer. DeepSeek, Moonshot and Anthropic have names of their own for cached tokens."""

    prompt_tokens: Tokens | None = None
    completion_tokens: Tokens | None = None
    total_tokens: Tokens | None = None
    prompt_tokens_details: _Part | None = None
    completion_tokens_details: _Part | None = None
    prompt_cache_hit_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None

    def counted(self, request: Mapping[str, Any] | None, written: str) -> TokenCounts:
        """All that is billed of a call.

        Some endpoints leave thinking out of the completion's tokens, or cached tokens out of the prompt's; the total
        tells. A zero for what has a text is no count.

        Args:
            request: its body, by which a prompt is estimated that is not told; None to leave it at 0.
            written: all that the model wrote.
        """
        before, after = self.prompt_tokens_details or _Part(), self.completion_tokens_details or _Part()
        names = before.cached_tokens, self.prompt_cache_hit_tokens, self.cache_read_input_tokens, self.cached_tokens
        cached = next(filter(None, names), 0)
        thinking = after.reasoning_tokens or self.reasoning_tokens or 0
        prompt, completion, total = self.prompt_tokens or 0, self.completion_tokens or 0, self.total_tokens or 0
        rest = max(0, total - prompt - completion)
        if cached > prompt or (cached == rest and cached != thinking):
            prompt, rest = prompt + cached, max(0, rest - cached)
        if thinking > completion and not rest:
            completion += thinking
        elif prompt:
            thinking = thinking or (rest if completion or not written else 0)
            completion += rest
        elif completion:
            prompt = rest
        complete = prompt > 0 and (completion > 0 or not written)
        if not complete and request is not None:
            about = sum(map(estimated_tokens, texts_of(request)))
            about += TOKENS_A_MESSAGE * len(request.get("messages", ()))
            prompt = prompt or min(about, total or about)
            if written:
                completion = completion or max(0, total - prompt) or estimated_tokens(written)
        return TokenCounts(prompt, completion, min(cached, prompt), min(thinking, completion), not complete)
