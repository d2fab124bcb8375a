"""Stored memories as used for retrieval by embedding, and the similarity of two texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracing.errors import ModelError


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored memory: its id, text, normalised embedding and the id of its variable in the trace."""

    id: str
    text: str
    vector: tuple[float, ...]
    variable: str

    def as_json(self) -> dict[str, Any]:
        """JSON form, for a memory's state."""
        return {"id": self.id, "text": self.text, "vector": list(self.vector), "variable": self.variable}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """The entry that `as_json` wrote."""
        return cls(data["id"], data["text"], tuple(data["vector"]), data["variable"])


def similarity(vector: Sequence[float], other: Sequence[float]) -> float:
    """Cosine of two normalised vectors; a `ModelError` if they are not from the same model."""
    check_lengths(vector, other)
    return sum(a * b for a, b in zip(vector, other, strict=True))


def check_lengths(vector: Sequence[float], other: Sequence[float]) -> None:
    """Raise a `ModelError` for vectors of different lengths, which are from different models."""
    if len(vector) != len(other):
        raise ModelError(
            f"a stored memory has a vector of {len(other)} numbers, and the text it is compared with one of "
            f"{len(vector)}: another embedding model answers under the same name; give it its own name, or delete "
            "the built memories (the folder `cache/memories` of the home)"
        )
