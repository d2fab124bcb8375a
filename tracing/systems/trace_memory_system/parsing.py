"""The events in a turn of a conversation: OpenAI tool calls, steps and decisions as JSON, anything else as a message.

A turn's text may hold, one a line:

    {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "get_stock", "arguments": "{…}"}}]}
    {"role": "tool", "tool_call_id": "c1", "content": "{…}"}
    {"step": "collect quotes", "status": "done", "detail": "two suppliers"}
    {"decision": "supplier", "outcome": "Halden", "confidence": 0.8, "reason": "cheapest"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tracing.trace_memory.events import LONGEST_NAME, Event
from tracing.trace_memory.openai_messages import events_of_messages


def events_of_turn(turn: str, speaker: str, text: str, *, time: float = 0.0, session: str = "") -> list[Event]:
    """The events of a turn, at least one; their ids begin with the turn's, and their process is the speaker."""
    rows = _rows(text)
    found: list[Event] = []
    if rows is not None:
        found = events_of_messages([row for row in rows if "role" in row], time, session)
        found += [event for row in rows if (event := _structured_event(row)) is not None]
    if not found:
        found = [Event("", "message", speaker or "user", text)]
    return [
        Event(
            _label(turn) if len(found) == 1 else f"{_label(turn)}#{number}",
            event.type,
            _label(event.key) or "unnamed",
            event.value,
            event.metadata,
            time,
            process=_label(speaker),
            session=_label(session),
            shared=True,
        )
        for number, event in enumerate(found, start=1)
    ]


def shown(spoken: str) -> str:
    """A turn (`speaker: text`) as a model reads it, its events without the form that they were sent in."""
    speaker, _, text = spoken.partition(": ")
    rows = _rows(text)
    if rows is None:
        return spoken
    events = events_of_turn("", speaker, text)
    if all(event.type == "message" for event in events):
        return spoken
    return "\n".join(f"{speaker} {event.content()}" for event in events)


def _label(text: str) -> str:
    """A name that a store can hold; data may name anything anyhow."""
    kept = "".join(sign for sign in text if sign != "\0" and not "\ud800" <= sign <= "\udfff")
    return kept[: LONGEST_NAME - len("#999")]


def _rows(text: str) -> list[Mapping[str, Any]] | None:
    """The JSON objects of a text that has one on every line; None for any other text."""
    if not text.startswith("{"):
        return None
    try:
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        return None
    return rows if all(isinstance(row, dict) for row in rows) else None


def _structured_event(row: Mapping[str, Any]) -> Event | None:
    if isinstance(row.get("step"), str):
        facts = {"status": str(row.get("status", "ok"))}
        return Event("", "step", row["step"], row.get("detail"), facts)
    if isinstance(row.get("decision"), str):
        facts = {name: row[name] for name in ("confidence", "reason") if row.get(name) is not None}
        return Event("", "decision", row["decision"], row.get("outcome"), facts)
    return None
