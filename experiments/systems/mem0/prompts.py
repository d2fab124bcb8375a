"""The baseline prompts of Mem0, and their contracts.

Mem0 sends `extract` as a system message before the messages, and `update` before the stored memories, the new facts and
its own description of the reply. Neither is a template for Mem0: it gets the rendered text, in which braces are plain.
"""

from __future__ import annotations

import functools
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
from experiments.systems.exporting.proving import ProvenLibrary, printed_by, proven_in
from experiments.systems.mem0.library import Generation, load
from experiments.systems.worker.environment import Environment
from tracing.errors import ContractError
from tracing.systems.baseline import fitted
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

PROOF = Path(__file__).with_name("proof.py")
"""Proves an export in the library, and prints the prompts that it uses by itself."""


def shipped_texts(generation: Generation, environment: Environment | None) -> Mapping[str, str]:
    """The prompts that the installed library uses by itself, by configuration key or `WHOLE`.

    They lack the line that tells today's date, which a custom prompt of Mem0 cannot keep up to date.

    Args:
        generation: of the library.
        environment: that has it, if this process does not.

    Raises:
        ConfigError: it is not installed.
    """
    if environment is None or generation.is_here():
        load(generation)
        texts = import_module("mem0.configs.prompts")
        return {key: _TODAY.sub("", getattr(texts, name)) for key, name in generation.shipped.items()}
    return _printed(
        proven_in(environment, generation.package, generation.generation), tuple(generation.shipped.items())
    )


@functools.cache
def _printed(library: ProvenLibrary, constants: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {key: str(text) for key, text in printed_by(library, PROOF, {"shipped": dict(constants)}).items()}


def with_texts(
    prompts: Mapping[str, PromptSpec], keys: Mapping[str, str], texts: Mapping[str, str]
) -> Mapping[str, PromptSpec]:
    """The prompts with the texts of a library or its user, by `keys` (prompt → key); their own are alternatives.

    Raises:
        ContractError: a text breaks the contract of its prompt.
    """
    taken = {
        name: _as_template(spec, texts[key]) for name, spec in prompts.items() if (key := keys.get(name, "")) in texts
    }
    for name, spec in taken.items():
        if problems := spec.contract.violations(spec.text):
            raise ContractError(f"{keys[name]}: {'; '.join(problems)}; change it there")
    return {**prompts, **taken}


def _as_template(spec: PromptSpec, text: str) -> PromptSpec:
    template = escaped(text)
    contract = replace(fitted(spec.contract, template), max_chars=max(_LONGEST_OF_LIBRARY, 2 * len(template)))
    return replace(spec, text=template, contract=contract, alternatives=(spec.text,))
