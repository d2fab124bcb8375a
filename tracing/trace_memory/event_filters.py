"""What to recall: exact filters on events, and their SQL, in which every value is a bound parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from tracing.errors import DataError
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
        type: one event type, or several.
        key: name of a tool, step, decision or speaker, or several.
        process: the agent persona that recorded the event.
        scope: `session` and `project` restrict to those of this memory; `entity` does not.
        project, session: other labels than this memory's.
        since, until: a time range; `since` is included, `until` is not.
        mentions: a text that the key, the value or the metadata contains, such as an order number.
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


Condition = tuple[str, list[Any]]
"""A WHERE condition on `events e`, and its parameters."""


def condition_of(arguments: FilterArguments, *, project: str, session: str, like: str) -> Condition:
    """The condition that a caller asks for; `mentions` does not tell small ASCII letters from capital ones.

    Args:
        arguments: what is left out, or empty, admits all.
        project, session: those of the memory, for `scope`.
        like: the operator of patterns that ignores case.

    Raises:
        DataError: a filter, a type or a scope is unknown, or a time is none.
    """
    check_arguments(arguments, FilterArguments, "filter")
    types, keys = _several(arguments.get("type")), _several(arguments.get("key"))
    for kind in types:
        check_type(kind, (*TYPES, DAMAGED))
    scope = arguments.get("scope", "entity")
    if scope not in ("session", "project", "entity"):
        raise DataError(f"scope: {scope!r} is unknown; choose session, project or entity")
    parts: list[str] = []
    values: list[Any] = []
    for column, choices in (("type", types), ("key", keys)):
        if choices:
            parts.append(f"e.{column} IN ({', '.join('?' for _ in choices)})")
            values += choices
    comparisons = {
        "e.process =": arguments.get("process"),
        "e.project =": arguments.get("project") or (project if scope == "project" else None),
        "e.session =": arguments.get("session") or (session if scope == "session" else None),
        "e.time >=": moment(arguments.get("since"), "since"),
        "e.time <": moment(arguments.get("until"), "until"),
    }
    for comparison, expected in comparisons.items():
        if expected is not None:
            parts.append(f"{comparison} ?")
            values.append(expected)
    mentions = arguments.get("mentions")
    if mentions:
        parts.append(f"(e.key || ' ' || e.value || ' ' || e.metadata) {like} ? ESCAPE '!'")
        escaped = "".join(f"!{sign}" if sign in "!%_" else sign for sign in mentions)
        values.append(f"%{escaped}%")
    return " AND ".join(parts) or "1 = 1", values


def _several(names: str | Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)
