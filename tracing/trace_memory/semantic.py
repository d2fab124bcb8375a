"""Semantic search over events. A vector is stored beside its event and refers to it, so no text is stored twice."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Sequence
from typing import Protocol

from tracing.errors import ConfigError
from tracing.trace_memory.event_filters import SELECTED, EventFilter
from tracing.trace_memory.events import Event
from tracing.trace_memory.stores.storage import Row, Storage, StoreError

_TEXTS_AT_ONCE = 64


class Embedding(Protocol):
    """Turns texts into vectors of length 1. The embedding model of memtune's model access is one."""

    @property
    def identity(self) -> str:
        """Tells models with different vectors apart."""
        ...

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Sequence[float]]:
        """A vector for each text, in order; `query` says that the texts search, and are not searched."""
        ...


def index(storage: Storage, embedding: Embedding, only: EventFilter, read: Callable[[Row], Event]) -> int:
    """Make the vectors that events of `wanted` lack; returns how many."""
    condition, values = only.condition(storage.like)
    missing = (
        f"SELECT {SELECTED} FROM events e LEFT JOIN vectors v ON v.event = e.number AND v.model = ? "
        f"WHERE v.event IS NULL AND {condition} ORDER BY e.number LIMIT ?"
    )
    count = 0
    while rows := storage.read(missing, [embedding.identity, *values, _TEXTS_AT_ONCE]):
        vectors = embedding.embed([read(row).content() for row in rows])
        numbers = [row[0] for row in rows]
        storage.add_vectors(
            [
                (number, embedding.identity, array("f", vector).tobytes())
                for number, vector in zip(numbers, vectors, strict=True)
            ]
        )
        count += len(rows)
    return count


def nearest(storage: Storage, embedding: Embedding, text: str, only: EventFilter, limit: int) -> list[Row]:
    """The rows of the indexed events of `wanted` whose content is nearest to `text`, nearest first.

    Every vector that the filter admits is compared, so the time grows with their number.

    Raises:
        ConfigError: numpy is missing.
        StoreError: a vector has another length than the text's.
    """
    try:
        import numpy as np
    except ModuleNotFoundError:
        raise ConfigError("semantic search needs numpy; install it with: pip install numpy") from None
    (vector,) = embedding.embed([text], query=True)
    query = np.asarray(vector, dtype=np.float32)
    condition, values = only.condition(storage.like)
    candidates = (
        f"SELECT v.event, v.vector FROM events e JOIN vectors v ON v.event = e.number WHERE v.model = ? AND {condition}"
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
    marks = ", ".join("?" for _ in places)
    rows = storage.read(f"SELECT {SELECTED} FROM events e WHERE e.number IN ({marks})", list(places))
    return sorted(rows, key=lambda row: places[row[0]])
