"""The prompts of Memori. Its cloud's extraction prompt is not public, so tuning starts from one of ours."""

from __future__ import annotations

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from experiments.systems.building_blocks.facts import EXTRACT_LAYOUT, EXTRACT_PURPOSE, EXTRACT_TASK, FACTS_SCHEMA
from tracing.systems.prompts import Contract, PromptSpec

EXTRACT_PROMPT = PromptSpec(
    name="extract",
    text=EXTRACT_TASK + "\n\nConversation:\n{conversation}",
    operation="extract_facts",
    contract=Contract(placeholders=frozenset({"conversation"}), reply_schema=FACTS_SCHEMA, markers=('"facts"',)),
    purpose=EXTRACT_PURPOSE,
    builds=True,
    layout=EXTRACT_LAYOUT,
)

PROMPTS = {prompt.name: prompt for prompt in (EXTRACT_PROMPT, ANSWER_PROMPT)}
