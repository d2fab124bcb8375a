"""How many tokens a call took, and about how many a text has where no endpoint tells."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_EAST = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Characters of Chinese, Japanese and Korean."""
_PIECE = re.compile(rf"[{_EAST}]+|[^\W\d_{_EAST}]+|\d+|(?P<sign>[^\w\s])(?P=sign){{0,3}}|_+|\n+")
_EASTERN = re.compile(f"[{_EAST}]")

TOKENS_A_MESSAGE = 4
"""Of a chat message, beside its text: who says it, and its ends."""

_EAST_IN_A_TOKEN = 3
"""Characters of Chinese, Japanese or Korean in a token, at most on average: the tokenizers of 2026 take 1 to 2."""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """The tokens of a call.

    Attributes:
        prompt, completion: in and out.
        cached: of the prompt's, those that the endpoint had read before.
        thinking: of the completion's, those that were no answer.
        estimated: whether the endpoint did not tell prompt or completion.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    thinking: int = 0
    estimated: bool = False


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, as the tokenizers of today's models cut it; rather too many than too few.

    Example:
        >>> estimated_tokens("Where does Ada live?")
        5
    """
    return sum(_tokens(piece[0]) for piece in _PIECE.finditer(text))


def _tokens(piece: str) -> int:
    """As measured with tokenizers of OpenAI, DeepSeek and Anthropic."""
    first = piece[0]
    if first.isdigit():
        return math.ceil(len(piece) / 3)
    if _EASTERN.match(first):
        return math.ceil(len(piece) * 0.85)
    if not first.isalpha():
        return 1 if first < "\u2e80" else 2
    return math.ceil(len(piece) / (7 if first < "\u0250" else 2.5))


def fewest_tokens(text: str) -> int:
    """Fewer tokens than this no tokenizer makes of a text: each takes one at least for a word between spaces.

    Example:
        >>> fewest_tokens("Where does Ada live?")
        4
    """
    eastern = len(_EASTERN.findall(text)) // _EAST_IN_A_TOKEN
    return eastern + sum(not _EASTERN.search(word) and any(map(str.isalnum, word)) for word in text.split())


def texts_of(body: Mapping[str, Any]) -> Iterator[str]:
    """What a model reads of a request: its messages or inputs, and its tools. Pictures and the like are none."""
    for message in body.get("messages", ()):
        content = message.get("content") or ""
        parts = content if isinstance(content, list) else [{"text": content}]
        yield "".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))
        if message.get("tool_calls"):
            yield str(message["tool_calls"])
    yield from body.get("input", ())
    if body.get("tools"):
        yield str(body["tools"])
