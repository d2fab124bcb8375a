"""The prompts of Mem0 2.x: the whole system prompt of its extraction, or the instructions that it appends.

Neither is a template for Mem0: it gets the rendered text, in which braces are plain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from experiments.systems.building_blocks.facts import EXTRACT_PURPOSE, LONGEST_FACT, MAX_FACTS
from tracing.systems.layouts import Item, Layout, Parts
from tracing.systems.prompts import Contract, PromptSpec

ATTRIBUTED, BY = "attributed_to", "user"
"""Mem0 stores with each memory whom it is about, and a search returns it. Here all messages have the role `user`."""

MEMORIES_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "memory": {
            "type": "array",
            "maxItems": MAX_FACTS,
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "maxLength": LONGEST_FACT},
                    ATTRIBUTED: {"type": "string", "enum": ["user", "assistant"]},
                },
                "required": ["text", ATTRIBUTED],
                "additionalProperties": False,
            },
        }
    },
    "required": ["memory"],
    "additionalProperties": False,
}
"""The form of an extraction's reply, for endpoints that enforce it; Mem0 reads no other key of an item."""


def _reply(parts: Parts, outputs: Sequence[Item]) -> str:
    return json.dumps({"memory": [{"text": item.text, ATTRIBUTED: BY} for item in outputs]}, ensure_ascii=False)


_LAYOUT = Layout(roles={"conversation": "messages"}, reply=_reply)

EXTRACT_PROMPT = PromptSpec(
    name="extract",
    text=(
        "List the facts that the new messages tell about the speakers and their families, and that no existing memory "
        "tells already. Write each fact as one short sentence in the third person, with the speaker's name.\n"
        '`attributed_to` is "user" for what the user tells, and "assistant" for what the assistant tells.\n'
        'Reply as JSON: {{"memory": [{{"text": "...", "attributed_to": "user"}}, '
        '{{"text": "...", "attributed_to": "user"}}]}}'
    ),
    operation="extract_facts",
    contract=Contract(
        placeholders=frozenset(),
        reply_schema=MEMORIES_SCHEMA,
        markers=('"memory"', '"text"', "JSON", ATTRIBUTED),
        waived=frozenset({ATTRIBUTED}),
    ),
    purpose=EXTRACT_PURPOSE,
    builds=True,
    layout=_LAYOUT,
)
"""Replaces the whole system prompt of the library."""

INSTRUCTIONS_PROMPT = PromptSpec(
    name="instructions",
    text=(
        "Both speakers are people: name them in each memory, and keep every concrete value. When something has "
        "changed, tell the new state."
    ),
    operation="extract_facts",
    contract=Contract(placeholders=frozenset()),
    purpose="Instructions for an extraction of facts, added to a long prompt that says how to reply.",
    builds=True,
    layout=_LAYOUT,
)
"""Added by the library to the end of its request, below its own system prompt of some 8,000 tokens."""

CHOICES: Mapping[str, PromptSpec] = {"system": EXTRACT_PROMPT, "instructions": INSTRUCTIONS_PROMPT}
"""What is tuned of the extraction."""


def prompts_of(tuned: str) -> Mapping[str, PromptSpec]:
    """The prompts where `tuned` of the extraction is tuned (a key of `CHOICES`)."""
    return {prompt.name: prompt for prompt in (CHOICES[tuned], ANSWER_PROMPT)}
