"""The length of an embedding model's vectors. Another length means that another model now uses its name."""

from __future__ import annotations

import json
import re
import threading

from tracing.errors import MalformedReplyError
from tracing.llm.cache import ResponseCache, request_key
from tracing.llm.http.bodies import Embeddings, unpacked

_SUFFIX = re.compile(r" dimension=(\d+)")


class Dimension:
    """The length of one model's vectors, stored beside them in the cache; thread-safe.

    The first vector sets it. If an endpoint later returns vectors of another length, they are not stored for this
    model. The length is recorded, and the next time the cache is opened it counts as a separate model (`suffix`), so
    that what was built with the old vectors is rebuilt.
    """

    def __init__(self, cache: ResponseCache | None, identity: str) -> None:
        self._cache, self._key = cache, request_key(kind="dimension", model=identity)
        self._lock = threading.Lock()
        self._first, self._latest = self._noted()
        self._expected = self._latest

    @property
    def suffix(self) -> str:
        """What is added to the model's identity: nothing while its vectors keep their first length."""
        return "" if self._first == self._expected else f" dimension={self._expected}"

    def expect(self, suffix: str) -> None:
        """Expect the vectors of the model that had this `suffix`, whatever the endpoint has returned since."""
        named = _SUFFIX.fullmatch(suffix)
        with self._lock:
            self._expected = int(named[1]) if named else self._first

    def fitting(self, entry: bytes) -> list[float] | None:
        """The vector of a cache entry; None if it is damaged or of another length."""
        vector = unpacked(entry)
        return vector if vector is not None and self._fits(len(vector)) else None

    def check(self, embeddings: Embeddings) -> None:
        """Raise a `MalformedReplyError` if new vectors are not as long as earlier ones."""
        length = len(embeddings.vectors[0])
        fits = self._fits(length)
        self._note(length)
        if not fits:
            raise MalformedReplyError(
                f"its vectors have {length} numbers, and earlier ones had {self._expected}, so another model "
                "answers under this name. Give that model a name or base_url of its own, or start a new run, which "
                "rebuilds what was built with the old vectors"
            )

    def _fits(self, length: int) -> bool:
        with self._lock:
            if self._expected is None:
                self._expected = length
            return length == self._expected

    def _note(self, length: int) -> None:
        with self._lock:
            if length == self._latest:
                return
            self._first, self._latest = self._first or length, length
            if self._cache is not None:
                self._cache.replace(self._key, json.dumps([self._first, length]).encode())

    def _noted(self) -> tuple[int | None, int | None]:
        entry = None if self._cache is None else self._cache.get(self._key)
        try:
            first, latest = json.loads(entry or b"[null, null]")
        except (ValueError, TypeError):
            return None, None
        return (first, latest) if isinstance(first, int) and isinstance(latest, int) else (None, None)
