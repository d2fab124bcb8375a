"""Run equal work one at a time, so that the second caller finds the first one's result."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence


class SingleFlight:
    """A lock for each key in use; thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._flights: dict[str, tuple[threading.Lock, list[None]]] = {}

    def alone(self, *keys: str) -> contextlib.AbstractContextManager[None]:
        """Wait until no other caller is inside with any of these keys."""
        return self._alone(keys[0]) if len(keys) == 1 else self._all(keys)

    @contextlib.contextmanager
    def _all(self, keys: Sequence[str]) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            # Always in the same order, so that two callers that share several keys never deadlock.
            for key in sorted({*keys}):
                stack.enter_context(self._alone(key))
            yield

    @contextlib.contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        with self._guard:
            lock, waiting = self._flights.setdefault(key, (threading.Lock(), []))
            waiting.append(None)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                waiting.pop()
                if not waiting:
                    del self._flights[key]
