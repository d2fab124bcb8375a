"""What Mem0 makes of a model's replies: facts, and one decision for each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracing.elements import Variable
from tracing.systems.facts import EVENTS


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to happen because of some new facts.

    Attributes:
        event: ADD, UPDATE, DELETE or NONE; NONE as well where the reply is of no use, since then nothing happens.
        target: number of the memory shown that it is about, or None.
        text: what is to be stored.
        facts: numbers of the facts it is about; one, unless the model merged them beyond recognition.
        problem: why it cannot be carried out; None where it can.
    """

    event: str
    target: int | None
    text: str
    facts: tuple[int, ...]
    problem: str | None = None


@dataclass(slots=True)
class Decided:
    """A decision whose carrying out is awaited: the entry it is about, and what was recorded of it."""

    decision: Decision
    target: str | None
    facts: list[Variable]
    variable: Variable


def facts_of(reply: str) -> list[str]:
    """The facts Mem0 finds in the reply to an extraction, each once.

    Raises:
        ValueError: there are none to be found; Mem0 then goes on with an empty list.
    """
    from mem0.memory.utils import normalize_facts

    value = _json_of(reply)
    if not isinstance(value, dict) or "facts" not in value:
        raise ValueError("the reply has no key 'facts'")
    try:
        return list(dict.fromkeys(normalize_facts(value["facts"])))
    except TypeError as error:
        raise ValueError(f"'facts' is no list ({error})") from None


def decisions_of(reply: str, facts: Sequence[str], shown: int) -> list[Decision]:
    """The decisions in the reply to an update, in the order in which Mem0 carries them out.

    Mem0 lets the model word and merge the texts, and list old memories as well. An item is taken to be about the fact
    it repeats, else about the one it has most words in common with. A fact that no item is about is left alone (NONE).
    """
    try:
        value = _json_of(reply)
        if not isinstance(value, dict):
            raise ValueError("the reply is no JSON object")
        items = value.get("memory", [])
        if not isinstance(items, list):
            raise ValueError("'memory' is no list")
    except ValueError as error:
        return [Decision("NONE", None, "", (number,), str(error)) for number in range(len(facts))]
    found = [decision for item in items if (decision := _decision(item, facts, shown)) is not None]
    decided = {number for decision in found for number in decision.facts}
    left = [number for number in range(len(facts)) if number not in decided]
    return [*found, *(Decision("NONE", None, facts[number], (number,)) for number in left)]


def reply_of(decisions: Sequence[Decision]) -> str:
    """The reply to an update that comes to these decisions."""
    items = [
        {"id": str(decision.target or 0), "text": decision.text, "event": decision.event} for decision in decisions
    ]
    return json.dumps({"memory": items})


def _decision(item: Any, facts: Sequence[str], shown: int) -> Decision | None:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str) or not item["text"]:
        return None
    text, event, named = item["text"], item.get("event"), item.get("id")
    # Mem0 knows the memories it showed by these texts; a number finds none of them.
    target = int(named) if named in [str(number) for number in range(shown)] else None
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
    wanted = _words(text)
    shared = [len(wanted & _words(fact)) for fact in facts]
    best = max(shared, default=0)
    return (shared.index(best),) if best else tuple(range(len(facts)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _json_of(reply: str) -> Any:
    from mem0.memory.utils import extract_json, remove_code_blocks

    cleaned = remove_code_blocks(reply)
    if not cleaned.strip():
        raise ValueError("the reply is empty")
    try:
        return json.loads(cleaned, strict=False)
    except json.JSONDecodeError:
        return json.loads(extract_json(reply), strict=False)
