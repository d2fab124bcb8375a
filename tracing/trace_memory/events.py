"""Events of an agent: what it did, decided and heard, as rows of `{entity, key, value, metadata}`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from tracing.errors import DataError
from tracing.files.depth import DEEPEST, is_too_deep
from tracing.graph.values import safe_repr

EventType = Literal["tool_call", "step", "decision", "message", "statement"]
"""What kind of event it is; a statement is what a model concluded from other events."""

Time = float | datetime | str
"""Seconds since the epoch, a datetime, or ISO text; without a zone it is UTC."""

TYPES: tuple[str, ...] = get_args(EventType)

DAMAGED = "damaged"
"""The type of an event whose content cannot be read any more; its value is the raw text (`TraceMemory.repair`)."""

_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC).timestamp(), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()

LONGEST_NAME = 200
"""Most characters of an id or a key, so that an index can hold three of them."""


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, complete once it is recorded.

    Attributes:
        id: unique among the events of its entity and process.
        type: see `EventType`.
        key: name of the tool, step or decision; who spoke, for a message; the subject of a statement.
        value: result, detail, outcome or text, as JSON.
        metadata: everything else, as JSON: `arguments`, `seconds`, `status`, `confidence`…
        time: when it began, in seconds since the epoch.
        entity: the user or project that it belongs to. Other entities never see it.
        process: the agent persona that recorded it. Other processes of the entity see it only if it is `shared`.
        project, session: labels for recall within an entity.
    """

    id: str
    type: str
    key: str
    value: Any
    metadata: Mapping[str, Any] = field(default_factory=dict)
    time: float = 0.0
    entity: str = ""
    process: str = ""
    project: str = ""
    session: str = ""
    shared: bool = False

    def record(self) -> dict[str, Any]:
        """The event as `{entity, key, value, metadata}`, with all other fields in the metadata."""
        place = {"id": self.id, "type": self.type, "time": self.time, "process": self.process}
        labels = {"project": self.project, "session": self.session, "shared": self.shared}
        return {
            "entity": self.entity,
            "key": self.key,
            "value": self.value,
            "metadata": {**place, **labels, **self.metadata},
        }

    def line(self) -> str:
        """The event as one line for a model, without ids: `2026-03-02 09:14 planner get_quote (part: HX-20) → 812`."""
        return f"{when(self.time)} {self.process}".strip() + f" {self.content()}"

    def content(self) -> str:
        """What happened, without time and process: the text by which semantic search finds it."""
        return _WRITTEN.get(self.type, _as_damaged)(self)


def when(time: float) -> str:
    """A time as text, to the minute, in UTC; empty for 0, and for what is no time, which a store may hold."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M") if time and _FIRST <= time <= _LAST else ""


def moment(time: Time | None, what: str = "time") -> float | None:
    """A time in seconds since the epoch. A datetime or ISO text without a zone counts as UTC.

    Raises:
        DataError: it is no time; the message says of `what`.
    """
    if time is None:
        return None
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError:
            raise DataError(f"{what}: {time!r} is not a time; write 2026-03-02T09:14 or give a datetime") from None
    if isinstance(time, datetime):
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    if isinstance(time, bool) or not isinstance(time, int | float) or not _FIRST <= time <= _LAST:
        raise DataError(
            f"{what}: {safe_repr(time):.40} is not a time of the years 1 to 9999; give seconds since the epoch, a "
            "datetime or ISO text"
        )
    return float(time)


def check_type(kind: object, types: Sequence[str] = TYPES) -> None:
    """Return if this is an event type. Raises DataError: it is none."""
    if kind not in types:
        raise DataError(f"type: {kind!r} is not an event type; choose one of {', '.join(TYPES)}")


def check_arguments(arguments: Mapping[str, Any], shape: type, what: str) -> None:
    """Return if a TypedDict `known` has all these keys: at run time Python itself accepts any.

    Raises:
        DataError: it does not; the message names the unknown `what` and those that there are.
    """
    for name in arguments:
        if name not in shape.__annotations__:
            raise DataError(f"{name}: unknown {what}; choose {', '.join(shape.__annotations__)}")


def checked_name(what: str, name: object, *, empty: bool = False) -> str:
    """A name that any store can hold and index.

    Raises:
        DataError: it is empty, too long, no text, or holds what is no text in UTF-8.
    """
    if not isinstance(name, str) or not (name or empty):
        raise DataError(f"{what}: {name!r} is not a name; give a text that is not empty")
    if len(name) > LONGEST_NAME:
        raise DataError(f"{what}: has {len(name)} characters; give at most {LONGEST_NAME}")
    if "\0" in name or any("\ud800" <= sign <= "\udfff" for sign in name):
        raise DataError(f"{what}: {name!r} holds a NUL or half a character; leave it out")
    return name


def as_json(what: str, value: Any) -> str:
    """A value as JSON text. Raises DataError: it is not JSON-compatible."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        too_deep = is_too_deep(text.encode())
    except UnicodeEncodeError:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        too_deep = is_too_deep(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{what}: is not JSON-compatible ({error}); give texts, numbers, lists and mappings") from None
    if too_deep:
        raise DataError(f"{what}: is nested more than {DEEPEST} levels deep; give less of it")
    return text


def plain(value: Any) -> str:
    """A JSON value as a model reads it with few tokens: `price: 812, parts: [HX-20, HX-21]`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_inner(part)}" for key, part in value.items())
    return _inner(value)


def _inner(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + plain(value) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inner, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return " ".join(value.split()) if isinstance(value, str) else str(value)


def _as_tool_call(event: Event) -> str:
    failed = "failed: " if event.metadata.get("status") == "error" else ""
    return f"{event.key} ({plain(event.metadata.get('arguments', {}))}) → {failed}{plain(event.value)}"


def _as_step(event: Event) -> str:
    detail = plain(event.value)
    return f"step {event.key}: {event.metadata.get('status', 'ok')}" + (f", {detail}" if detail else "")


def _as_decision(event: Event) -> str:
    sure = event.metadata.get("confidence")
    confidence = f" (confidence {sure:g})" if isinstance(sure, int | float) else ""
    reason = event.metadata.get("reason")
    return f"decided {event.key}: {plain(event.value)}{confidence}" + (f", because {plain(reason)}" if reason else "")


def _as_message(event: Event) -> str:
    return f"{event.key}: {plain(event.value)}"


def _as_statement(event: Event) -> str:
    return plain(event.value)


def _as_damaged(event: Event) -> str:
    return f"({event.type}) {event.key}: {plain(event.value)}"


_WRITTEN = {
    "tool_call": _as_tool_call,
    "step": _as_step,
    "decision": _as_decision,
    "message": _as_message,
    "statement": _as_statement,
}
