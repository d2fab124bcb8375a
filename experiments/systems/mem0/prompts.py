"""The baseline prompts of Mem0, and their contracts.

Mem0 sends `extract` as a system message before the messages, and `update` before the stored memories, the new facts and
its own description of the reply. Neither is a template for Mem0: it gets the rendered text, in which braces are plain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from experiments.systems.building_blocks.facts import EVENTS, FACTS_SCHEMA, LONGEST_FACT, MAX_FACTS, decision_reply
from experiments.systems.building_blocks.prompt_files import prompts_in
from experiments.systems.building_blocks.structured_replies import object_schema
from experiments.systems.mem0.library import V1, load
from tracing.systems.layouts import Item, Parts
from tracing.systems.prompts import PromptSpec, escaped

_UPDATE_SCHEMA = {
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
}

ATTRIBUTED, BY = "attributed_to", "user"
"""Mem0 stores with each memory whom it is about, and a search returns it. Here all messages have the role `user`."""

MEMORIES_SCHEMA = object_schema(
    memory={
        "type": "array",
        "maxItems": MAX_FACTS,
        "items": object_schema(
            text={"type": "string", "maxLength": LONGEST_FACT},
            **{ATTRIBUTED: {"type": "string", "enum": ["user", "assistant"]}},
        ),
    }
)
"""The form of an extraction's reply, for endpoints that enforce it; Mem0 reads no other key of an item."""


def _memories_reply(parts: Parts, outputs: Sequence[Item]) -> str:
    return json.dumps({"memory": [{"text": item.text, ATTRIBUTED: BY} for item in outputs]}, ensure_ascii=False)


_SPECS = prompts_in(
    Path(__file__).with_name("prompts.toml"),
    schemas={"extract": FACTS_SCHEMA, "update": _UPDATE_SCHEMA, "whole": MEMORIES_SCHEMA},
    replies={"update": decision_reply, "whole": _memories_reply, "instructions": _memories_reply},
)

PROMPTS = {"extract": _SPECS["extract"], "update": _SPECS["update"], "answer": ANSWER_PROMPT}
"""Before 2.0."""

CHOICES = {"system": _SPECS["whole"], "instructions": _SPECS["instructions"]}
"""What is tuned of the extraction of 2.x: the library's whole system prompt of some 8,000 tokens, or the instructions
that it adds to the end of its request."""


def prompts_of(tuned: str) -> Mapping[str, PromptSpec]:
    """The prompts where `tuned` of the extraction is tuned (a key of `CHOICES`)."""
    return {prompt.name: prompt for prompt in (CHOICES[tuned], ANSWER_PROMPT)}


_LONGEST_OF_LIBRARY = 12_000
"""In characters: the library's own prompts have three to five thousand, and a rewrite may add to them."""

_TODAY = re.compile(r"\n- Today's date is .*")


def library_prompts() -> Mapping[str, PromptSpec]:
    """The same prompts with the texts that the installed library uses by default; the short ones are alternatives.

    They lack the line that tells today's date, which a custom prompt of Mem0 cannot keep up to date.
    """
    load()
    texts = import_module("mem0.configs.prompts")
    defaults = {name: getattr(texts, V1.shipped[key]) for name, key in V1.keys.items()}
    return {name: _as_template(spec, defaults[name]) if name in defaults else spec for name, spec in PROMPTS.items()}


def _as_template(spec: PromptSpec, text: str) -> PromptSpec:
    template = escaped(_TODAY.sub("", text))
    contract = replace(spec.contract, max_chars=_LONGEST_OF_LIBRARY)
    return replace(spec, text=template, contract=contract, alternatives=(spec.text,))
