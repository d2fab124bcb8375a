"""The events in a turn of a conversation: OpenAI tool calls, steps and decisions as JSON, anything else as a message.

A turn's text may hold, one a line:

    {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "get_stock", "arguments": "{…}"}}]}
    {"role": "tool", "tool_call_id": "c1", "content": "{…}"}
    {"step": "collect quotes", "status": "done", "detail": "two suppliers"}
    {"decision": "supplier", "outcome": "Halden", "confidence": 0.8, "reason": "cheapest"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracing.errors import DataError, MalformedReplyError
from tracing.llm.http.strict_json import strict_json
from tracing.trace_memory.events import LONGEST_NAME, Event, as_json
from tracing.trace_memory.openai_messages import events_of_messages


def events_of_turn(turn: str, speaker: str, text: str, *, time: float = 0.0, session: str = "") -> list[Event]:
    """The events of a turn, at least one; their ids begin with the turn's, and their process is the speaker."""
    events = _events_in(text, time, session) or [Event("", "message", speaker or "user", text)]
    return [
        Event(
            _label(turn) if len(events) == 1 else f"{_label(turn)}#{number}",
            event.type,
            _label(event.key) or "unnamed",
            event.value,
            event.metadata,
            time,
            process=_label(speaker),
            session=_label(session),
            shared=True,
        )
        for number, event in enumerate(events, start=1)
    ]


def turn_text(spoken: str) -> str:
    """A turn (`speaker: text`) as a model reads it, its events without the form that they were sent in."""
    speaker, _, text = spoken.partition(": ")
    events = events_of_turn("", speaker, text)
    if all(event.type == "message" for event in events):
        return spoken
    return "\n".join(f"{speaker} {event.content()}" for event in events)


def _label(text: str) -> str:
    """A name that a store can hold; data may name anything anyhow."""
    label = "".join(sign for sign in text if sign != "\0" and not "\ud800" <= sign <= "\udfff")
    return label[: LONGEST_NAME - len("#999")]


def _events_in(text: str, time: float, session: str) -> list[Event]:
    """The events of a text that has a JSON object on every line; none for any other, and if one cannot be stored."""
    if not text.startswith("{"):
        return []
    try:
        rows = [strict_json(line) for line in text.split("\n") if line.strip()]
        if not all(isinstance(row, dict) for row in rows):
            return []
        events = events_of_messages([row for row in rows if "role" in row], time, session)
        events += [event for row in rows if (event := _structured_event(row)) is not None]
        for event in events:
            # What a tool is given and returns is JSON in a text of its row.
            strict_json(as_json("event", [event.value, event.metadata]))
    except (DataError, MalformedReplyError):
        return []
    return events


def _structured_event(row: Mapping[str, Any]) -> Event | None:
    if isinstance(row.get("step"), str):
        facts = {"status": str(row.get("status", "ok"))}
        return Event("", "step", row["step"], row.get("detail"), facts)
    if isinstance(row.get("decision"), str):
        facts = {name: row[name] for name in ("confidence", "reason") if row.get(name) is not None}
        return Event("", "decision", row["decision"], row.get("outcome"), facts)
    return None
