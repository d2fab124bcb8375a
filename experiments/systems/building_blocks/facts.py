"""What systems that store facts share: how a small model is asked for facts, and what may happen to one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from experiments.systems.building_blocks.structured_replies import read_as
from tracing.systems.layouts import Item, Layout, Parts, numbered
from tracing.systems.prompts import Contract

MAX_FACTS = 4
"""Most facts of one extraction; a small model fills any list it may, so the limit is near what turns contain."""

LONGEST_FACT = 140
"""Most characters of one fact."""

EVENTS = ("ADD", "UPDATE", "DELETE", "NONE")

EXTRACT_TASK = (
    "List the facts that the speakers tell about themselves and their families. "
    "Write each fact as one short sentence in the third person.\n"
    'Reply as JSON: {{"facts": ["...", "..."]}}'
)
"""The seed's task, as the beginning of a template."""

EXTRACT_PURPOSE = (
    "Turn a conversation into short, self-contained facts that name the person and keep every concrete value."
)

FACTS_SCHEMA = {
    "type": "object",
    "properties": {
        "facts": {"type": "array", "items": {"type": "string", "maxLength": LONGEST_FACT}, "maxItems": MAX_FACTS}
    },
    "required": ["facts"],
    "additionalProperties": False,
}
"""The form of an extraction's reply, for endpoints that enforce it."""


def decision_reply(parts: Parts, outputs: Sequence[Item]) -> str:
    """A decision on an entry, as the reply that gives its number among the memories shown."""
    value = outputs[0].value if outputs else ""
    if not isinstance(value, dict):
        return str(value)
    listed = [item.name for item in parts.get("memories", ())]
    number = str(listed.index(value["target"]) + 1) if value.get("target") in listed else ""
    return json.dumps({"event": value.get("event"), "id": number})


EXTRACT_LAYOUT = Layout(roles={"conversation": "messages"})
DECIDE_CONTRACT = Contract(
    placeholders=frozenset({"fact", "memories"}),
    reply_schema={
        "type": "object",
        "properties": {"event": {"type": "string", "enum": list(EVENTS)}, "id": {"type": "string"}},
        "required": ["event", "id"],
        "additionalProperties": False,
    },
    markers=('"event"', '"id"', *EVENTS),
)
DECIDE_LAYOUT = Layout(lists={"memories": numbered}, reply=decision_reply)

_SLACK = 4
"""A reply may exceed the limits by this factor, since some endpoints do not enforce them."""


class _Facts(BaseModel):
    """The same form, for replies of endpoints that do not enforce it."""

    model_config = ConfigDict(strict=True)

    facts: Annotated[
        list[Annotated[str, Field(max_length=_SLACK * LONGEST_FACT)]], Field(max_length=_SLACK * MAX_FACTS)
    ]


_read = read_as(_Facts)


def facts_told(reply: str) -> list[str]:
    """The facts in the reply to an extraction, as written.

    Raises:
        MalformedReplyError: it is not JSON, does not have the form of `FACTS_SCHEMA`, or is far over its limits.
    """
    return _read(reply).facts
