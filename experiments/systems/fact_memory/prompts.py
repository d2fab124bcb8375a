"""The seed prompts of the fact memory and their contracts."""

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from experiments.systems.building_blocks.facts import (
    DECIDE_CONTRACT,
    DECIDE_LAYOUT,
    EXTRACT_LAYOUT,
    EXTRACT_PURPOSE,
    EXTRACT_TASK,
    FACTS_SCHEMA,
)
from tracing.systems.prompts import Contract, PromptSpec

EXTRACT_PROMPT = PromptSpec(
    name="extract",
    text=EXTRACT_TASK + "\n\nConversation:\n{conversation}",
    operation="extract_facts",
    contract=Contract(
        placeholders=frozenset({"conversation"}),
        reply_schema=FACTS_SCHEMA,
        markers=('"facts"',),
    ),
    purpose=EXTRACT_PURPOSE,
    builds=True,
    layout=EXTRACT_LAYOUT,
)

DECIDE_PROMPT = PromptSpec(
    name="decide",
    text=(
        "Compare the new fact with the stored memories and choose what to do.\n"
        "ADD: the fact is new.\n"
        "UPDATE: the fact changes a memory; give the id of that memory.\n"
        "DELETE: the fact says that a memory is to be forgotten; give its id.\n"
        "NONE: the fact is stored already.\n"
        'Reply as JSON: {{"event": "...", "id": "..."}}\n\n'
        "Memories:\n{memories}\n\n"
        "New fact: {fact}"
    ),
    operation="decide_update",
    contract=DECIDE_CONTRACT,
    purpose="Decide whether a new fact is added, changes a stored memory, asks to forget one, or is stored already.",
    builds=True,
    layout=DECIDE_LAYOUT,
)

PROMPTS = {prompt.name: prompt for prompt in (EXTRACT_PROMPT, DECIDE_PROMPT, ANSWER_PROMPT)}
