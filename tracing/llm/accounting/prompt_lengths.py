"""Whether an endpoint reads less of its prompts than was sent: a full context cuts them without a word."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from tracing.llm.accounting.token_counts import TokenCounts, fewest_tokens, texts_of

_log = logging.getLogger(__name__)

_CALLS = 2
"""Prompts of different length that say so, before anything is told."""
_EQUAL = 3
"""Prompts of different length with one count, the greatest there is."""
_MARGIN = 0.9
_BYTES_A_TOKEN = 5
"""Where a count has fewer bytes than this for each token, the prompt was read whole."""
_SHORTEST = 2_000
"""Bytes of a prompt that is long enough to be cut."""
_LONGER = 1.5
"""How many times as long as the shortest of equal counts the longest prompt is."""

REMEDY = (
    "raise the context of its server (Ollama: OLLAMA_CONTEXT_LENGTH or num_ctx; llama.cpp: -c; vLLM: --max-model-len), "
    "or send less"
)


class PromptLengths:
    """What the counts of one model's prompts say of its context; thread-safe.

    A count may come in any tokenizer's tokens, so it says something where it is less than the words of the prompt, or
    where it is the same for prompts of clearly different length.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._short: dict[int, int] = {}
        self._greatest, self._sizes = 0, set[int]()
        self.sentence: str | None = None

    def note(self, request: Mapping[str, Any], tokens: TokenCounts) -> None:
        """Take in one call; what it makes certain is logged once."""
        read = tokens.prompt + tokens.cached
        if tokens.estimated or self.sentence is not None or not _is_text(request):
            return
        texts = list(texts_of(request))
        size = sum(len(text.encode("utf-8", "replace")) for text in texts)
        fewest = sum(map(fewest_tokens, texts)) if _BYTES_A_TOKEN * read < size > _SHORTEST else 0
        with self._lock:
            if read > self._greatest:
                self._greatest, self._sizes = read, set()
            if read == self._greatest and size > _SHORTEST:
                self._sizes.add(size)
            if _MARGIN * fewest > read:
                self._short[size] = read
            if len(self._short) >= _CALLS:
                self._tell(f"read {max(self._short.values()):,} tokens of prompts with {fewest:,} words and more")
            elif len(self._sizes) >= _EQUAL and max(self._sizes) > _LONGER * min(self._sizes):
                sizes = f"{min(self._sizes):,} to {max(self._sizes):,} bytes"
                self._tell(f"counts {self._greatest:,} tokens for each of its prompts of {sizes}")

    def _tell(self, observation: str) -> None:
        if self.sentence is None:
            self.sentence = f"{self._model} {observation}: it cuts them without saying so; {REMEDY}"
            _log.warning("%s", self.sentence)


def _is_text(request: Mapping[str, Any]) -> bool:
    """Whether it is known what of a request becomes tokens."""
    contents = [message.get("content") or [] for message in request.get("messages", ())]
    return all(isinstance(content, str) or all("text" in part for part in content) for content in contents)
