"""Events of OpenAI messages: each tool call with its result, and what was said.

Both forms are read: messages of chat completions (`tool_calls`, role `tool`), and items of the Responses API
(`function_call`, `function_call_output`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tracing.errors import DataError
from tracing.files.depth import structured
from tracing.interchange.spans import digest
from tracing.trace_memory.events import Event

_ANY_DEPTH = 1_000_000
"""Who stores events refuses what is too deep, rather than take it for a text."""

_SILENT = ("system", "developer")
"""Roles of instructions, which are no part of what happened."""


def events_of_messages(messages: Iterable[Any], time: float, session: str) -> list[Event]:
    """The events of a whole list of messages; a call whose result is not there yet is left out.

    A tool call is known again by its id. A text is known by its role and how often it was said before in the list, so
    that a list which has grown adds what is new.

    Args:
        messages: mappings, or objects of the openai package.
        time: of all of them, since messages have none.
        session: part of the events' ids.

    Raises:
        DataError: something is no message.
    """
    rows = [_as_mapping(message) for message in messages]
    results: dict[str, Any] = {}
    for row in rows:
        if row.get("role") == "tool":
            results[str(row.get("tool_call_id"))] = structured(_text_of(row.get("content")), _ANY_DEPTH)
        elif row.get("type") == "function_call_output":
            results[str(row.get("call_id"))] = structured(_text_of(row.get("output")), _ANY_DEPTH)
    occurrences: Counter[tuple[str, str]] = Counter()
    events = []
    for row in rows:
        for call, name, arguments in _calls(row):
            if call in results:
                parsed = structured(arguments, _ANY_DEPTH)
                result, failed = _failure_in(results[call])
                facts = {
                    "arguments": parsed if isinstance(parsed, Mapping) else {"input": parsed or ""},
                    "status": "error" if failed else "ok",
                }
                events.append(Event(digest(session, "call", call), "tool_call", name, result, facts, time))
        role, text = str(row.get("role", "")), _text_of(row.get("content"))
        if role and text and role != "tool" and role not in _SILENT:
            occurrences[role, text] += 1
            event = digest(session, role, text, str(occurrences[role, text]))
            events.append(Event(event, "message", str(row.get("name") or role), text, {}, time))
    return events


def _calls(row: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """(id, name, arguments) of the tool calls of a message."""
    if row.get("type") == "function_call":
        return [(str(row.get("call_id")), str(row.get("name")), row.get("arguments"))]
    calls = []
    for tool_call in row.get("tool_calls") or ():
        call = _as_mapping(tool_call)
        if call.get("type") == "custom":
            inner, key = _as_mapping(call.get("custom") or {}), "input"
        else:
            inner, key = _as_mapping(call.get("function") or {}), "arguments"
        calls.append((str(call.get("id")), str(inner.get("name")), inner.get(key)))
    return calls


def _failure_in(result: Any) -> tuple[Any, bool]:
    """What a tool returned, and whether it is an error: an object with the key `error` alone."""
    if isinstance(result, Mapping) and set(result) == {"error"}:
        return result["error"], True
    return result, False


def _as_mapping(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    dump = getattr(row, "model_dump", None)
    if callable(dump):
        fields = dump(mode="json", exclude_none=True)
        if isinstance(fields, Mapping):
            return fields
    raise DataError(
        f"a {type(row).__name__} is not an OpenAI message; give mappings with `role`, or the package's objects"
    )


def _text_of(content: Any) -> str:
    """The text of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json.dumps(content, default=str)
    texts = [part if isinstance(part, str) else str(_as_mapping(part).get("text") or "") for part in content]
    return "\n".join(text for text in texts if text)
