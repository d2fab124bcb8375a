"""Several rows of things to try, taken from by turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TypeVar

T = TypeVar("T")


def by_turns(rows: Iterable[Iterable[T]]) -> Iterator[T]:
    """The first of each row, then the second of each, and so on; rows may end early."""
    ended = object()
    for turn in zip_longest(*rows, fillvalue=ended):
        yield from (item for item in turn if item is not ended)  # type: ignore[misc]


def going_round(items: Sequence[T], start: int, count: int) -> list[T]:
    """At most `count` items, each once, from a place on; after the last comes the first.

    Example:
        >>> going_round(["a", "b", "c"], 5, 2)
        ['c', 'a']
    """
    first = start % len(items) if items else 0
    return [*items[first:], *items[:first]][:count]
