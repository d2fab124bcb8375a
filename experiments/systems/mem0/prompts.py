"""The seed prompts of Mem0, and their contracts.

Mem0 sends `extract` as a system message before the messages, and `update` before the stored memories, the new facts and
its own description of the reply. Neither is a template for Mem0: it gets the rendered text, in which braces are plain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from experiments.systems.building_blocks.facts import (
    DECIDE_LAYOUT,
    EVENTS,
    EXTRACT_LAYOUT,
    EXTRACT_PURPOSE,
    EXTRACT_TASK,
    FACTS_SCHEMA,
)
from experiments.systems.mem0.library import load
from tracing.systems.prompts import Contract, PromptSpec

EXTRACT_PROMPT = PromptSpec(
    name="extract",
    text=EXTRACT_TASK,
    operation="extract_facts",
    contract=Contract(
        placeholders=frozenset(),
        reply_schema=FACTS_SCHEMA,
        markers=('"facts"', "JSON"),
    ),
    purpose=EXTRACT_PURPOSE,
    builds=True,
    layout=EXTRACT_LAYOUT,
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
