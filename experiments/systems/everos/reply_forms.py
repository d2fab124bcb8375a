"""How EverOS reads the replies to its requests."""

from __future__ import annotations

import json
import re
from typing import Any

from tracing.errors import MalformedReplyError

_FLAT = re.compile(r"\{[^{}]*\}", re.DOTALL)


def ends_of(reply: str, count: int) -> list[int]:
    """After which of `count` messages an episode ends.

    Raises:
        MalformedReplyError: EverOS would ask again, and give up in the end.
    """
    match = _FLAT.search(reply)
    data = _parsed(match.group() if match else "")
    ends = data.get("boundaries", [])
    if not isinstance(ends, list) or "should_wait" not in data:
        raise MalformedReplyError("the reply has no list 'boundaries' or no 'should_wait'")
    try:
        numbers = {int(end) for end in ends if end is not None}
    except (TypeError, ValueError):
        raise MalformedReplyError("'boundaries' is not a list of numbers") from None
    return sorted(number for number in numbers if 1 <= number < count)


def episode_of(reply: str) -> tuple[str, str]:
    """Title and content of an episode. Raises as `ends_of`."""
    data = _parsed(_balanced(reply))
    if "title" not in data or not str(data.get("content", "")).strip():
        raise MalformedReplyError("the reply has no 'title' or no 'content'")
    return str(data["title"]), str(data["content"])


def facts_of(reply: str) -> list[str]:
    """The facts of an episode. Raises as `ends_of`."""
    data = _parsed(_balanced(reply))
    block = data.get("event_log", data.get("atomic_facts"))
    if not isinstance(block, dict) or not block.get("time") or not isinstance(block.get("atomic_fact", []), list):
        raise MalformedReplyError("the reply has no 'atomic_facts' with 'time' and a list 'atomic_fact'")
    return [fact.strip() for fact in block.get("atomic_fact", []) if isinstance(fact, str) and fact.strip()]


def _parsed(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        raise MalformedReplyError("the reply has no JSON object") from None
    if not isinstance(data, dict):
        raise MalformedReplyError("the reply is not a JSON object")
    return data


def _balanced(text: str) -> str:
    """The first object in a text, by its braces alone."""
    start, depth = text.find("{"), 0
    for at in range(max(start, 0), len(text) if start >= 0 else 0):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start : at + 1]
    raise MalformedReplyError("the reply has no whole JSON object")
