"""The prompts that EverOS 1.5 lets a user replace, their contracts, and how they are read back from a request.

EverOS ships long texts of its own; tuning starts from short ones, or from those with `memtune import-prompts`.
"""

from __future__ import annotations

import re
import string

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from experiments.systems.everos.rendering import reads_alike
from tracing.systems.prompts import Contract, PromptSpec

_LONGEST = 16_000
"""In characters: EverOS's own texts have five to seven thousand, and a rewrite may add to them."""

_LONGEST_EPISODE = 2000
"""In characters, for a model that is constrained to a schema: a small one would repeat itself until it is cut short."""

BOUNDARY_PROMPT = PromptSpec(
    name="boundary_detection",
    text=(
        "Split this conversation into episodes. An episode ends only where the subject clearly changes, or the day.\n\n"
        "{messages}\n\n"
        'Reply as JSON: {{"reasoning": "one sentence", "boundaries": [numbers], "should_wait": false}}\n'
        "`boundaries` has the number of each message after which an episode ends; it is empty for a single episode."
    ),
    operation="detect_boundaries",
    contract=Contract(
        placeholders=frozenset({"messages"}),
        reply_schema={
            "type": "object",
            "properties": {
                "reasoning": {"type": "string", "maxLength": 200},
                "boundaries": {"type": "array", "items": {"type": "integer"}, "maxItems": 50},
                "should_wait": {"type": "boolean"},
            },
            "required": ["reasoning", "boundaries", "should_wait"],
            "additionalProperties": False,
        },
        markers=('"boundaries"', '"should_wait"'),
        max_chars=_LONGEST,
        rules=(reads_alike,),
    ),
    purpose="Find the numbers of the messages after which one episode of a conversation ends and another begins.",
    builds=True,
)

EPISODE_PROMPT = PromptSpec(
    name="episode_extract",
    text=(
        "Retell this conversation as one short text in the third person. Name every person, keep every name, number "
        "and place, and give dates in full.\n\n"
        "Conversation start time: {conversation_start_time}\n"
        "Conversation:\n{conversation}\n\n"
        "{custom_instructions}\n\n"
        'Reply as JSON: {{"title": "...", "content": "..."}}'
    ),
    operation="extract_episode",
    contract=Contract(
        placeholders=frozenset({"conversation_start_time", "conversation", "custom_instructions"}),
        reply_schema={
            "type": "object",
            "properties": {
                "title": {"type": "string", "maxLength": 120},
                "content": {"type": "string", "maxLength": _LONGEST_EPISODE},
            },
            "required": ["title", "content"],
            "additionalProperties": False,
        },
        markers=('"title"', '"content"'),
        max_chars=_LONGEST,
        rules=(reads_alike,),
    ),
    purpose="Turn a stretch of conversation into a narrative that names the people and keeps every concrete value.",
    builds=True,
)

FACTS_SCHEMA = {
    "type": "object",
    "properties": {
        "atomic_facts": {
            "type": "object",
            "properties": {
                "time": {"type": "string", "maxLength": 40},
                "atomic_fact": {"type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 12},
            },
            "required": ["time", "atomic_fact"],
            "additionalProperties": False,
        }
    },
    "required": ["atomic_facts"],
    "additionalProperties": False,
}
"""The reply to EverOS's own request for the facts of an episode, whose prompt has no slot."""

SLOTS = (BOUNDARY_PROMPT.name, EPISODE_PROMPT.name)
PROMPTS = {prompt.name: prompt for prompt in (BOUNDARY_PROMPT, EPISODE_PROMPT, ANSWER_PROMPT)}


class Request:
    """The requests that a prompt makes, from which the values of its placeholders can be read."""

    def __init__(self, template: str) -> None:
        names: set[str] = set()
        pattern = ""
        for literal, name, _, _ in string.Formatter().parse(template):
            pattern += re.escape(literal)
            if name is not None:
                pattern += f"(?P={name})" if name in names else f"(?P<{name}>.*?)"
                names.add(name)
        self._pattern = re.compile(pattern, re.DOTALL)

    def values(self, text: str) -> dict[str, str] | None:
        """The values in a request; None if it is not of this prompt."""
        match = self._pattern.fullmatch(text)
        return None if match is None else match.groupdict()
