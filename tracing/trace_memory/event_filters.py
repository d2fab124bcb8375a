"""What to recall: exact filters on events, and their SQL, in which every value is a bound parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events; an empty field admits all.

    Attributes:
        types: event types.
        keys: names of tools, steps, decisions or speakers.
        process: the agent persona that recorded the event.
        project, session: its labels.
        since, until: seconds since the epoch; `since` is included, `until` is not.
        mentions: a text that key, value or metadata contains; case makes no difference for ASCII letters.
    """

    types: Sequence[str] = ()
    keys: Sequence[str] = ()
    process: str | None = None
    project: str | None = None
    session: str | None = None
    since: float | None = None
    until: float | None = None
    mentions: str | None = None

    def condition(self, like: str) -> tuple[str, list[Any]]:
        """The WHERE condition on table `events e`, and its parameters; `like` is the operator that ignores case."""
        parts: list[str] = []
        values: list[Any] = []
        for column, among in (("type", self.types), ("key", self.keys)):
            if among:
                parts.append(f"e.{column} IN ({', '.join('?' for _ in among)})")
                values += among
        for column, expected in (("process", self.process), ("project", self.project), ("session", self.session)):
            if expected is not None:
                parts.append(f"e.{column} = ?")
                values.append(expected)
        if self.since is not None:
            parts.append("e.time >= ?")
            values.append(self.since)
        if self.until is not None:
            parts.append("e.time < ?")
            values.append(self.until)
        if self.mentions:
            parts.append(f"(e.key || ' ' || e.value || ' ' || e.metadata) {like} ? ESCAPE '!'")
            escaped = "".join(f"!{sign}" if sign in "!%_" else sign for sign in self.mentions)
            values.append(f"%{escaped}%")
        return " AND ".join(parts) or "1 = 1", values


def newest(only: EventFilter, limit: int | None, like: str) -> tuple[str, list[Any]]:
    """A query for the newest events, newest first; those of one time in the reverse order of their arrival."""
    condition, values = only.condition(like)
    query = f"SELECT {SELECTED} FROM events e WHERE {condition} ORDER BY e.time DESC, e.number DESC"
    if limit is None:
        return query, values
    return f"{query} LIMIT ?", [*values, limit]


def filter_of(arguments: FilterArguments, *, project: str, session: str) -> EventFilter:
    """The filter that a caller asks for; `project` and `session` are those of the memory, for `scope`.

    Raises:
        DataError: a filter, a type or a scope is unknown, or a time is none.
    """
    check_arguments(arguments, FilterArguments, "filter")
    types = _several(arguments.get("type"))
    for kind in types:
        check_type(kind, (*TYPES, DAMAGED))
    scope = arguments.get("scope", "entity")
    if scope not in ("session", "project", "entity"):
        raise DataError(f"scope: {scope!r} is unknown; choose session, project or entity")
    return EventFilter(
        types=types,
        keys=_several(arguments.get("key")),
        process=arguments.get("process"),
        project=arguments.get("project") or (project if scope == "project" else None),
        session=arguments.get("session") or (session if scope == "session" else None),
        since=moment(arguments.get("since"), "since"),
        until=moment(arguments.get("until"), "until"),
        mentions=arguments.get("mentions"),
    )


def _several(names: str | Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)
