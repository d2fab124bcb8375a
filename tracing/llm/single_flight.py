"""One at a time for what is equal, so that the second finds what the first has made."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class SingleFlight:
    """A lock for each key in use; thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._flights: dict[str, tuple[threading.Lock, list[None]]] = {}

    @contextlib.contextmanager
    def alone(self, *keys: str) -> Iterator[None]:
        """Wait until nobody else is inside with any of these keys."""
        with contextlib.ExitStack() as stack:
            # In one order everywhere, so that two who share several keys never wait for each other.
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
