"""What model calls cost, by the operation that made them."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, field


@dataclass(slots=True)
class Usage:
    """One operation's calls made and served from the cache; tokens, cost and seconds of the calls made.

    `empty` counts the replies without a text, of both kinds of call.
    """

    calls_made: int = 0
    calls_cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    empty: int = 0


class Meter:
    """Adds up calls; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._usage: dict[str, Usage] = {}

    def count_call(
        self, operation: str, *, prompt_tokens: int, completion_tokens: int, cost: float, seconds: float
    ) -> None:
        """Count one call that reached a model, whether or not it succeeded."""
        with self._lock:
            usage = self._usage.setdefault(operation, Usage())
            usage.calls_made += 1
            usage.prompt_tokens += prompt_tokens
            usage.completion_tokens += completion_tokens
            usage.cost += cost
            usage.seconds += seconds

    def cached(self, operation: str) -> None:
        """Count one call that was answered from the cache."""
        with self._lock:
            self._usage.setdefault(operation, Usage()).calls_cached += 1

    def empty(self, operation: str) -> None:
        """Count one reply without a text, made or cached."""
        with self._lock:
            self._usage.setdefault(operation, Usage()).empty += 1

    def snapshot(self) -> dict[str, dict[str, float]]:
        """`{operation name: {count name: value}}`, as plain values that can be written as JSON."""
        with self._lock:
            return {name: asdict(usage) for name, usage in sorted(self._usage.items())}

    def totals(self) -> dict[str, float]:
        """The same counts over all operations."""
        counts = list(self.snapshot().values())
        return {name: sum(usage[name] for usage in counts) for name in asdict(Usage())}


@dataclass(slots=True)
class Watch:
    """Calls made inside a `watching` block, also by threads that inherited its context.

    Attributes:
        calls: calls that reached a model.
        cached: calls answered from the cache.
        failures: one line for every call that failed, was refused by a budget, or was cut short although a whole reply
            was needed, even if its exception was swallowed. A result made with any failure is tainted.
        prompt_tokens, completion_tokens: of the calls that reached a model.
    """

    calls: int = 0
    cached: int = 0
    failures: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, *, calls: int, cached: int, prompt_tokens: int, completion_tokens: int) -> None:
        with self._lock:
            self.calls += calls
            self.cached += cached
            self.prompt_tokens += prompt_tokens
            self.completion_tokens += completion_tokens

    def fail(self, reason: str) -> None:
        with self._lock:
            self.failures.append(reason)
