"""What an operation does with a memory, by the name and the arguments of its tool, and by what others show of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal, get_args

import msgspec

from tracing.interchange.agent_memory.notes import plain, text_in
from tracing.package_data import packaged_tables

Role = Literal["store", "update", "delete", "retrieve", "other"]
"""What an operation does with a memory: `other` is none of the rest."""
ROLES: tuple[Role, ...] = get_args(Role)

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_COMMON = frozenset(("user", "context", "graph", "node", "nodes", "history", "info", "information", "detail"))
"""Things of which other programs' operations are named too."""
_ENOUGH = 3
"""Words that a text has at least, to be known where another tool shows it."""
_SHORTEST = 3
"""Letters that a word has at least which may tell what a tool does."""


class _Words(msgspec.Struct, frozen=True):
    """The tables of `roles.toml`, which says what they are."""

    empty: frozenset[str]
    things: frozenset[str]
    neutral: frozenset[str]
    actions: tuple[str, ...]
    beside: frozenset[str]
    verbs: Mapping[Role, frozenset[str]]
    alone: Mapping[Role, frozenset[str]]


@cache
def _words() -> _Words:
    return msgspec.convert(packaged_tables("tracing.interchange.agent_memory", "roles.toml"), _Words)


def role_of(name: str, arguments: Any = None) -> Role | None:
    """The role of a tool by its name, or by the argument that says what to do; None if they do not tell.

    Example:
        >>> role_of("save_memory"), role_of("memory", {"command": "view"}), role_of("get_weather")
        ('store', 'retrieve', None)
        >>> role_of("rewrite_memory"), role_of("rewrite_query")
        ('update', None)
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    tables = _words()
    if not words:
        return None
    if isinstance(arguments, Mapping) and tables.things.intersection(words):
        action = next((arguments[key] for key in tables.actions if isinstance(arguments.get(key), str)), "")
        role = _verb(word.lower() for word in _WORDS.findall(str(action)))
        if role is not None:
            return role
    verb = _verb(words)
    if verb is None:
        return None
    every = frozenset[str]().union(*tables.verbs.values())
    others = set(words) - every - tables.neutral
    if any(tables.alone.get(verb, frozenset()).intersection(words)) or others & (tables.things - _COMMON):
        return verb
    # A verb alone, or with what much else is called too, is a memory's where nothing speaks against it.
    speaking = not tables.beside.isdisjoint(words) or _is_reckoning(arguments)
    return verb if others <= _COMMON and not speaking else None


def _is_reckoning(arguments: Any) -> bool:
    """Whether arguments are numbers alone, as those of a calculator."""
    values = arguments.values() if isinstance(arguments, Mapping) else ()
    return bool(values) and all(isinstance(value, int | float) for value in values)


def says_nothing_of_it(name: str) -> bool:
    """Whether a tool's name has no word that tells what it does.

    Example:
        >>> says_nothing_of_it("tool_7"), says_nothing_of_it("get_weather")
        (True, False)
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    return all(word.isdigit() or len(word) < _SHORTEST or word in _words().empty for word in words)


def is_of_memory(name: str) -> bool:
    """Whether a name says both what is done and that it is done with a memory, so that it needs not be a tool's.

    Example:
        >>> is_of_memory("mem0.search"), is_of_memory("memory_agent"), is_of_memory("add")
        (True, False, False)
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    alone = frozenset[str]().union(*_words().alone.values())
    return role_of(name) is not None and not (_words().things - _COMMON | alone).isdisjoint(words)


def _verb(words: Iterable[str]) -> Role | None:
    """The role of the first word that is a verb of one."""
    verbs = _words().verbs
    return next((role for word in words for role, role_verbs in verbs.items() if word in role_verbs), None)


def roles_shown(calls: Iterable[tuple[str, Any, str]]) -> dict[str, Role]:
    """The roles of tools whose names do not tell them, from their calls in order: name, arguments, result as a text.

    One whose result shows the text that an earlier call of another was given retrieves, and that other stores.
    """
    roles: dict[str, Role] = {}
    earlier_texts: list[tuple[str, str]] = []
    for name, arguments, result in calls:
        values = arguments.values() if isinstance(arguments, Mapping) else (arguments,)
        texts, result_words = [plain(text_in(value)) for value in values], f" {plain(result)} "
        for writer, written in earlier_texts:
            if writer != name and f" {written} " in result_words and not any(written in text for text in texts):
                roles.setdefault(writer, "store")
                roles.setdefault(name, "retrieve")
        earlier_texts += [(name, text) for text in texts if len(text.split()) >= _ENOUGH]
    return roles
