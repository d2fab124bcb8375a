"""What to recall: exact filters on events, and their SQL, in which every value is a bound parameter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from tracing.errors import DataError
from tracing.graph.values import safe_repr
from tracing.trace_memory.events import DAMAGED, TYPES, EventType, Time, check_arguments, check_type, moment

Scope = Literal["session", "project", "entity"]

COLUMNS = (
    *("number", "id", "entity", "process", "project", "session"),
    *("shared", "type", "key", "value", "metadata", "time"),
)
"""The columns of `events`, in the order in which rows are read."""

SELECTED = ", ".join(f"e.{column}" for column in COLUMNS)
"""The same, for a query on `events e`."""


class FilterArguments(TypedDict, total=False):
    """Exact filters; what is left out admits all.

    Attributes:
        type: one event type, or several; none of an empty list.
        key: name of a tool, step, decision or speaker, or several; none of an empty list.
        process: the agent persona that recorded the event.
        scope: `session` and `project` restrict to those of this memory; `entity` does not.
        project, session: other labels than this memory's.
        since, until: a time range; `since` is included, `until` is not.
        mentions: a text that the key, the value or the metadata contains, such as an order number; no sign of it is a
            wildcard.
    """

    type: EventType | Sequence[EventType]
    key: str | Sequence[str]
    process: str
    scope: Scope
    project: str
    session: str
    since: Time
    until: Time
    mentions: str


_MOST_CHOICES = 10_000
"""Names in a list of them: SQLite takes some 32,000 parameters."""

Condition = tuple[str, list[Any]]
"""A WHERE condition on `events e`, and its parameters."""


def condition_of(arguments: FilterArguments, *, project: str, session: str, like: str) -> Condition:
    """The condition that a caller asks for; `mentions` does not tell small ASCII letters from capital ones.

    Args:
        arguments: what is left out, or None, admits all.
        project, session: those of the memory, for `scope`.
        like: the operator of patterns that ignores case.

    Raises:
        DataError: a filter, a type or a scope is unknown, or a time is none.
    """
    check_arguments(arguments, FilterArguments, "filter")
    types, keys = (_several(name, arguments.get(name)) for name in ("type", "key"))
    for kind in types or ():
        check_type(kind, (*TYPES, DAMAGED))
    scope = arguments.get("scope", "entity")
    if scope not in ("session", "project", "entity"):
        raise DataError(f"scope: {scope!r} is unknown; choose session, project or entity")
    process, in_project, in_session, mentions = (
        None if (text := arguments.get(name)) is None else _text(name, text)
        for name in ("process", "project", "session", "mentions")
    )
    if in_project is None and scope == "project":
        in_project = project
    if in_session is None and scope == "session":
        in_session = session
    parts: list[str] = []
    values: list[Any] = []
    for column, choices in (("type", types), ("key", keys)):
        if choices is not None:
            parts.append(f"e.{column} IN ({', '.join('?' for _ in choices)})" if choices else "1 = 0")
            values += choices
    comparisons = {
        "e.process =": process,
        "e.project =": in_project,
        "e.session =": in_session,
        "e.time >=": moment(arguments.get("since"), "since"),
        "e.time <": moment(arguments.get("until"), "until"),
    }
    for comparison, expected in comparisons.items():
        if expected is not None:
            parts.append(f"{comparison} ?")
            values.append(expected)
    if mentions:
        spellings = dict.fromkeys((mentions, json.dumps(mentions, ensure_ascii=False)[1:-1]))
        contains = f"(e.key || ' ' || e.value || ' ' || e.metadata) {like} ? ESCAPE '!'"
        parts.append(f"({' OR '.join([contains] * len(spellings))})")
        values += ("%" + re.sub("[!%_]", r"!\g<0>", spelling) + "%" for spelling in spellings)
    return " AND ".join(parts) or "1 = 1", values


def _several(what: str, names: object) -> tuple[str, ...] | None:
    """The names that are admitted; None where all are."""
    if names is None:
        return None
    if not isinstance(names, Iterable) or isinstance(names, bytes | Mapping):
        raise DataError(f"{what}: {safe_repr(names)} is not a name; give a text, or a list of texts")
    admitted = tuple(_text(what, name) for name in ([names] if isinstance(names, str) else names))
    if len(admitted) > _MOST_CHOICES:
        raise DataError(f"{what}: has {len(admitted)} names; give at most {_MOST_CHOICES}")
    return admitted


def _text(what: str, text: object) -> str:
    if not isinstance(text, str):
        raise DataError(f"{what}: {safe_repr(text)} is not a text; give one, or leave the filter out")
    # Stores have half a character, and NUL, as JSON escapes them, and take no other.
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\u0000")
