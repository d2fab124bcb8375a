"""What model calls cost, by the operation that made them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tracing.llm.accounting.prompt_lengths import PromptLengths
from tracing.llm.accounting.token_counts import TokenCounts

Unusable = Literal["empty", "cut", "refused", "filtered", "malformed"]
"""Why a reply could not be used."""

UNUSABLE: dict[Unusable, str] = {
    "empty": "empty",
    "cut": "cut short",
    "refused": "refused",
    "filtered": "filtered",
    "malformed": "malformed",
}
"""The same in words."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls made and served from the cache; tokens, cost and seconds of the calls made.

    Of both kinds of call, the replies that could not be used: `empty`, `cut` at their limit of tokens, `refused` by the
    model, `filtered` by the endpoint, and `malformed`. `estimated` counts the calls made whose tokens the endpoint did
    not tell.
    """

    calls_made: int = 0
    calls_cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    empty: int = 0
    cut: int = 0
    refused: int = 0
    filtered: int = 0
    malformed: int = 0
    estimated: int = 0

    @property
    def unusable(self) -> dict[str, int]:
        """Reason → how many replies could not be used for it; only the reasons there are."""
        return {words: count for reason, words in UNUSABLE.items() if (count := getattr(self, reason))}

    def __add__(self, other: Usage) -> Usage:
        # `astuple` would take ten times as long, for each call.
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


class Meter:
    """Adds up calls by operation; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._usage: dict[str, Usage] = {}
        self._prompts: dict[str, PromptLengths] = {}

    def count(self, operation: str, usage: Usage) -> None:
        """Count calls that reached a model, whether or not they succeeded, calls that the cache answered, or both."""
        with self._lock:
            self._usage[operation] = self._usage.get(operation, Usage()) + usage

    def note_prompt(self, model: str, request: Mapping[str, Any], tokens: TokenCounts) -> None:
        """Take in what an endpoint counted of a request."""
        with self._lock:
            lengths = self._prompts.setdefault(model, PromptLengths(model))
        lengths.note(request, tokens)

    def cut_prompts(self) -> tuple[str, ...]:
        """Of each model whose prompts are cut without a word, how that is known and what to do."""
        with self._lock:
            return tuple(lengths.sentence for lengths in self._prompts.values() if lengths.sentence is not None)

    def snapshot(self) -> dict[str, dict[str, float]]:
        """`{operation name: {count name: value}}`, as plain values that can be written as JSON."""
        with self._lock:
            return {name: asdict(usage) for name, usage in sorted(self._usage.items())}

    def usage_of(self, operation: str) -> Usage:
        """The counts of one operation."""
        with self._lock:
            return self._usage.get(operation, Usage())

    def unusable(self) -> dict[str, dict[str, int]]:
        """Operation name → reason → how many of its replies could not be used; only where there are any."""
        with self._lock:
            return {name: usage.unusable for name, usage in sorted(self._usage.items()) if usage.unusable}

    def totals(self) -> dict[str, float]:
        """The same counts over all operations."""
        with self._lock:
            usages = [usage for _, usage in sorted(self._usage.items())]
        return asdict(sum(usages, Usage()))


@dataclass(slots=True)
class Watch:
    """Calls made inside a `watching` block, also by threads that inherited its context.

    Attributes:
        calls: calls that reached a model.
        cached: calls answered from the cache.
        failures: one line for every call that failed, was refused by a budget, or was cut short although a whole reply
            was needed, even if its exception was swallowed. A result made with any failure is tainted.
        prompt_tokens, completion_tokens: of the calls that reached a model.
        count_malformed: counts a reply of theirs as one that could not be read.
    """

    count_malformed: Callable[[], None]
    calls: int = 0
    cached: int = 0
    failures: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, usage: Usage) -> None:
        with self._lock:
            self.calls += usage.calls_made
            self.cached += usage.calls_cached
            self.prompt_tokens += usage.prompt_tokens
            self.completion_tokens += usage.completion_tokens

    def fail(self, reason: str) -> None:
        with self._lock:
            self.failures.append(reason)
