"""How Mem0 reads a model's replies: as facts, and one decision for each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from experiments.systems.building_blocks.facts import EVENTS
from tracing.errors import MalformedReplyError
from tracing.graph.elements import Variable
from tracing.llm.http.strict_json import strict_json

_MOST_ITEMS = 500
"""Mem0 itself has no limit, and embeds and searches for each item."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What should happen because of some new facts.

    Attributes:
        event: ADD, UPDATE, DELETE or NONE; also NONE if the reply is unusable, since then nothing happens.
        target: number of the memory shown that it is about, or None.
        text: what to store.
        facts: numbers of the facts it is about; one, unless the model merged them beyond recognition.
        problem: why it cannot be carried out; None if it can.
    """

    event: str
    target: int | None
    text: str
    facts: tuple[int, ...]
    problem: str | None = None


@dataclass(slots=True)
class Decided:
    """A decision not yet carried out: the entry it is about, and what was recorded of it."""

    decision: Decision
    target: str | None
    facts: list[Variable]
    variable: Variable


def facts_of(reply: str, *, finds_json: bool = True) -> list[str]:
    """The facts Mem0 finds in the reply to an extraction, each once.

    Raises:
        MalformedReplyError: it has no facts, or far too many; Mem0 should continue without any.
    """
    utils = import_module("mem0.memory.utils")
    # Releases before 1.0 take the list as it is, and fail where an item is no text.
    normalize_facts = getattr(utils, "normalize_facts", list)
    value = json_of(reply, finds_json=finds_json)
    if not isinstance(value, dict) or "facts" not in value:
        raise MalformedReplyError("the reply has no key 'facts'")
    try:
        facts = normalize_facts(value["facts"])
    except TypeError as error:
        raise MalformedReplyError(f"'facts' is not a list ({error})") from None
    if not all(isinstance(fact, str) for fact in facts):
        raise MalformedReplyError("a fact is not a text")
    check_count(facts, "facts")
    return list(dict.fromkeys(facts))


def memories_of(reply: str) -> list[str]:
    """The texts that Mem0 2.x finds in the reply to an extraction, each once.

    Raises:
        MalformedReplyError: it has none that Mem0 could store: it would continue without any, or fail.
    """
    value = json_of(reply)
    if not isinstance(value, dict) or not isinstance(value.get("memory"), list):
        raise MalformedReplyError("the reply has no list 'memory'")
    items = value["memory"]
    if not all(isinstance(item, dict) and isinstance(item.get("text", ""), str) for item in items):
        raise MalformedReplyError("an item of 'memory' is not an object with a text")
    check_count(items, "memories")
    return list(dict.fromkeys(item["text"] for item in items if item.get("text")))


def decisions_of(reply: str, facts: Sequence[str], memory_count: int, *, finds_json: bool = True) -> list[Decision]:
    """The decisions in the reply to an update, in the order in which Mem0 carries them out.

    Mem0 lets the model reword and merge the texts, and list old memories too. An item is assigned to the fact it
    repeats, or else to the one it shares most words with. A fact without an item is left alone (NONE).

    Raises:
        MalformedReplyError: it has no decisions, or far too many; Mem0 should continue without any.
    """
    value = json_of(reply, finds_json=finds_json)
    if not isinstance(value, dict):
        raise MalformedReplyError("the reply is not a JSON object")
    items = value.get("memory", [])
    if not isinstance(items, list):
        raise MalformedReplyError("'memory' is not a list")
    check_count(items, "decisions")
    decisions = [decision for item in items if (decision := _decision(item, facts, memory_count)) is not None]
    decided = {number for decision in decisions for number in decision.facts}
    untouched = [number for number in range(len(facts)) if number not in decided]
    return [*decisions, *(Decision("NONE", None, facts[number], (number,)) for number in untouched)]


def left_alone(facts: Sequence[str], problem: str) -> list[Decision]:
    """The decisions for a malformed reply: nothing happens because of any fact."""
    return [Decision("NONE", None, "", (number,), problem) for number in range(len(facts))]


def reply_of(decisions: Sequence[Decision]) -> str:
    """The reply to an update that leads to these decisions."""
    items = [
        {"id": str(decision.target or 0), "text": decision.text, "event": decision.event} for decision in decisions
    ]
    return json.dumps({"memory": items})


def _decision(item: Any, facts: Sequence[str], memory_count: int) -> Decision | None:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str) or not item["text"]:
        return None
    text, event, named = item["text"], item.get("event"), item.get("id")
    # Mem0 knows the memories it showed by these texts; a number finds none of them.
    target = int(named) if named in [str(number) for number in range(memory_count)] else None
    about = _about(text, facts)
    if event == "NONE" and text not in facts:
        # An old memory, listed as unchanged.
        return None
    if event not in EVENTS:
        return Decision("NONE", None, text, about, f"the event {event!r} is unknown")
    if event in ("UPDATE", "DELETE") and target is None:
        return Decision(event, None, text, about, f"the id {named!r} is none of the memories shown")
    return Decision(event, target if event != "ADD" else None, text, about)


def _about(text: str, facts: Sequence[str]) -> tuple[int, ...]:
    if text in facts:
        return (facts.index(text),)
    words = _words(text)
    shared = [len(words & _words(fact)) for fact in facts]
    best = max(shared, default=0)
    return (shared.index(best),) if best else tuple(range(len(facts)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def json_of(reply: str, *, finds_json: bool = True) -> Any:
    """The JSON in a reply, as Mem0 reads it."""
    from mem0.memory.utils import extract_json, remove_code_blocks

    cleaned = remove_code_blocks(reply)
    if not cleaned.strip():
        raise MalformedReplyError("the reply is empty")
    try:
        return strict_json(cleaned, line_breaks=True)
    except MalformedReplyError:
        if not finds_json:
            raise
        return strict_json(extract_json(reply), line_breaks=True)


def check_count(items: Sequence[Any], what: str) -> None:
    """Refuse a list that no window of turns can have led to."""
    if len(items) > _MOST_ITEMS:
        raise MalformedReplyError(f"the reply has {len(items):,} {what}, but no window of turns has {_MOST_ITEMS:,}")
