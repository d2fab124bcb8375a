"""The seed prompts of Mem0, and their contracts.

Mem0 sends `extract` as a system message before the messages, and `update` before the stored memories, the new facts and
its own description of the reply. Neither is a template for Mem0: it gets the rendered text, in which braces are plain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from experiments.systems.building_blocks.facts import (
    DECIDE_LAYOUT,
    EVENTS,
    EXTRACT_PURPOSE,
    EXTRACT_TASK,
    FACTS_PROMPT,
    FACTS_SCHEMA,
    LONGEST_FACT,
    MAX_FACTS,
)
from experiments.systems.mem0.library import load
from tracing.systems.layouts import Item, Layout, Parts
from tracing.systems.prompts import Contract, PromptSpec

EXTRACT_PROMPT = replace(
    FACTS_PROMPT,
    text=EXTRACT_TASK,
    contract=Contract(placeholders=frozenset(), reply_schema=FACTS_SCHEMA, markers=('"facts"', "JSON")),
)

UPDATE_PROMPT = PromptSpec(
    name="update",
    text=(
        "Compare each new fact with the stored memories and choose what to do.\n"
        "ADD: the fact is new.\n"
        "UPDATE: the fact changes a memory; give the id of that memory.\n"
        "DELETE: the fact says that a memory is to be forgotten; give its id.\n"
        "NONE: the fact is stored already."
    ),
    operation="decide_update",
    contract=Contract(
        placeholders=frozenset(),
        reply_schema={
            "type": "object",
            "properties": {
                "memory": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string"},
                            "event": {"type": "string", "enum": list(EVENTS)},
                            "id": {"type": "string"},
                        },
                        "required": ["text", "event", "id"],
                    },
                }
            },
            "required": ["memory"],
        },
        markers=EVENTS,
    ),
    purpose="Decide whether each new fact is added, changes a stored memory, asks to forget one, or is stored already.",
    builds=True,
    layout=DECIDE_LAYOUT,
)

PROMPTS = {prompt.name: prompt for prompt in (EXTRACT_PROMPT, UPDATE_PROMPT, ANSWER_PROMPT)}

_LONGEST_OF_LIBRARY = 12_000
"""In characters: the library's own prompts have three to five thousand, and a rewrite may add to them."""

_TODAY = re.compile(r"\n- Today's date is .*")


def library_prompts() -> Mapping[str, PromptSpec]:
    """The same prompts with the texts that the installed library uses by default; the short ones are alternatives.

    They lack the line that tells today's date, which a custom prompt of Mem0 cannot keep up to date.

    Raises:
        ConfigError: the library is not installed, or another generation.
    """
    load()
    texts = import_module("mem0.configs.prompts")
    defaults = {"extract": texts.USER_MEMORY_EXTRACTION_PROMPT, "update": texts.DEFAULT_UPDATE_MEMORY_PROMPT}
    return {name: _as_template(spec, defaults[name]) if name in defaults else spec for name, spec in PROMPTS.items()}


def _as_template(spec: PromptSpec, text: str) -> PromptSpec:
    template = _TODAY.sub("", text).replace("{", "{{").replace("}", "}}")
    contract = replace(spec.contract, max_chars=_LONGEST_OF_LIBRARY)
    return replace(spec, text=template, contract=contract, alternatives=(spec.text,))


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

WHOLE_PROMPT = PromptSpec(
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

CHOICES: Mapping[str, PromptSpec] = {"system": WHOLE_PROMPT, "instructions": INSTRUCTIONS_PROMPT}
"""What is tuned of the extraction."""


def prompts_of(tuned: str) -> Mapping[str, PromptSpec]:
    """The prompts where `tuned` of the extraction is tuned (a key of `CHOICES`)."""
    return {prompt.name: prompt for prompt in (CHOICES[tuned], ANSWER_PROMPT)}
