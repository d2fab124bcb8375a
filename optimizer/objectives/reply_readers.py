"""What an operation makes of a model's reply, found by looking at replies and outputs that were recorded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar

from tracing.errors import MalformedReplyError
from tracing.llm.reply_json import read_json
from tracing.systems.layouts import Item, Read

Exchange = tuple[str, Sequence[Item]]
"""A reply, and the outputs that the operation made of it."""

LEAST_READ = 0.8
"""Least share of the recorded replies that a way of reading must read as the operation did. What an operation drops for
other reasons, such as a note that it has already, is in none."""

_MOST_TRIED, _MOST_LOOKED_AT = 20, 200

_Word = TypeVar("_Word", bound=Hashable)
_Values = Callable[[str], list[Any]]

_BULLET = re.compile(r"^(?:[-*•–]|\d+[.):])\s+")


def reader_of(exchanges: Sequence[Exchange], own: Read | None = None) -> Read | None:
    """The way of reading that gives most of the recorded outputs; None if it gives fewer than `LEAST_READ` of them.

    Known are: the whole reply; its lines, with or without bullets and numbers; what stands after a word that replies
    have in common, as "ANSWER:"; and JSON, each role a property or a list, or one field of a list's objects, where what
    is no such JSON may be taken whole. A reply of which nothing was made, such as "NONE", is read as nothing.

    Args:
        exchanges: what was recorded.
        own: the system's way of reading, instead of these; nothing is made of a reply at which it fails.

    Example:
        >>> notes = [Item("note", "n1", "memory_entry", "Mara sails."), Item("note", "n2", "memory_entry", "Bo rows.")]
        >>> read = reader_of([("- Mara sails.\\n- Bo rows.", notes), ("none", [])])
        >>> [item.text for item in read("- Ann swims.")], read("none")
        (['Ann swims.'], ())
    """
    made = [exchange for exchange in exchanges if exchange[1]]
    read = _shown_by(made, {reply.strip() for reply, outputs in exchanges if not outputs}) if own is None else own

    def tolerant(reply: str) -> Sequence[Item]:
        try:
            return read(reply)
        except Exception:
            return ()

    alike = sum(reads_alike(tolerant, *exchange) for exchange in made)
    return tolerant if made and alike >= LEAST_READ * len(made) else None


def _shown_by(made: Sequence[Exchange], silent: Collection[str]) -> Read:
    kinds = {item.role: item.kind for _, outputs in made for item in outputs}
    ways: dict[str, _Values] = {}
    for role in kinds:
        pairs = [(reply, _values(outputs, role)) for reply, outputs in made[:_MOST_LOOKED_AT]]
        ways[role] = max(_ways(pairs), key=lambda way: sum(_stripped(way(reply)) == values for reply, values in pairs))

    def read(reply: str) -> tuple[Item, ...]:
        if reply.strip() in silent:
            return ()
        return tuple(
            Item(role, f"{role}{number}", kinds[role], value)
            for role, way in ways.items()
            for number, value in enumerate(_stripped(way(reply)), start=1)
        )

    return read


def reads_alike(read: Read, reply: str, outputs: Sequence[Item]) -> bool:
    """Whether a way of reading makes of a reply what the operation did, in the order of each role."""
    after = read(reply)
    return all(_values(after, role) == _values(outputs, role) for role in {item.role for item in (*after, *outputs)})


def _values(outputs: Sequence[Item], role: str) -> list[Any]:
    return _stripped(item.value for item in outputs if item.role == role)


def _stripped(values: Iterable[Any]) -> list[Any]:
    """Values without the spaces around texts, and without empty texts: nothing is at stake there."""
    texts = (value.strip() if isinstance(value, str) else value for value in values)
    return [value for value in texts if value != ""]


def _ways(pairs: Sequence[tuple[str, Sequence[Any]]]) -> Iterator[_Values]:
    """The ways of reading that are worth trying, the plainest first."""
    yield lambda reply: [reply]
    yield str.splitlines
    yield lambda reply: [_BULLET.sub("", line.strip()) for line in reply.splitlines()]
    for mark in _frequent(mark for reply, values in pairs for mark in _marks(reply, values)):
        yield partial(_after, mark)
    replies = [_json(reply) for reply, _ in pairs]
    for name in _frequent(name for value in replies for name in _names(value)):
        items = (item for value in replies for item in _at(name, value) if isinstance(item, dict))
        for field in (None, *_frequent(field for item in items for field in item)):
            yield partial(_in_json, name, field)
            yield partial(_in_json_or_whole, name, field)


def _frequent(words: Iterable[_Word]) -> list[_Word]:
    return [word for word, _ in Counter(words).most_common(_MOST_TRIED)]


def _marks(reply: str, values: Sequence[Any]) -> Iterator[str]:
    """What stands before the only value in its line, if the reply has it."""
    if len(values) == 1 and isinstance(values[0], str):
        before, found, _ = reply.rpartition(values[0])
        if found:
            yield before.rpartition("\n")[2].strip()


def _after(mark: str, reply: str) -> list[Any]:
    """What stands after a mark, or without one in the last line."""
    return [reply.strip().rpartition(mark or "\n")[2]]


@lru_cache(maxsize=1024)
def _json(reply: str) -> Any:
    try:
        return read_json(reply)
    except MalformedReplyError:
        return None


def _names(value: Any) -> list[str | None]:
    """What lists and values of a reply are found by: the names of its properties, and None for the reply itself."""
    return [*value, None] if isinstance(value, dict) else [None]


def _at(name: str | None, value: Any) -> list[Any]:
    inner = value if name is None else value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, list) else [] if inner is None else [inner]


def _in_json(name: str | None, field: str | None, reply: str) -> list[Any]:
    items = _at(name, _json(reply))
    return items if field is None else [item[field] for item in items if isinstance(item, dict) and field in item]


def _in_json_or_whole(name: str | None, field: str | None, reply: str) -> list[Any]:
    """What is at a place of a JSON reply, and any other reply as it is, as programs do that a model may disobey."""
    value = _json(reply)
    is_there = value is not None and name in _names(value)
    return _in_json(name, field, reply) if is_there else [reply]
