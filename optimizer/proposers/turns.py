"""Several rows of things to try, taken from by turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")


def by_turns(rows: Iterable[Iterable[T]]) -> Iterator[T]:
    """The first of each row, then the second of each, and so on; rows may end early."""
    ended = object()
    for turn in zip_longest(*rows, fillvalue=ended):
        yield from (item for item in turn if item is not ended)  # type: ignore[misc]
