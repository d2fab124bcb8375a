"""The seed prompts of the trace memory and their contracts."""

from collections.abc import Sequence

from experiments.systems.building_blocks.facts import DECIDE_CONTRACT, DECIDE_LAYOUT, FACTS_SCHEMA
from experiments.systems.trace_memory.turn_events import turn_text
from tracing.systems.layouts import Layout, bullets
from tracing.systems.prompts import Contract, PromptSpec


def _as_trace(texts: Sequence[str]) -> str:
    return "\n".join(turn_text(text) for text in texts)


SUMMARISE_PROMPT = PromptSpec(
    name="summarise",
    text=(
        "List what these agents found out, decided and finished, with every value and name. "
        "Write each as one short sentence.\n"
        'Reply as JSON: {{"facts": ["...", "..."]}}\n\n'
        "Trace:\n{trace}"
    ),
    operation="summarise",
    contract=Contract(placeholders=frozenset({"trace"}), reply_schema=FACTS_SCHEMA, markers=('"facts"',)),
    purpose=(
        "Turn a stretch of an agent's trace into short, self-contained statements of what was found out, decided and "
        "finished, that keep every concrete value and say who did it."
    ),
    builds=True,
    layout=Layout(roles={"trace": "messages"}, lists={"trace": _as_trace}),
)

MERGE_PROMPT = PromptSpec(
    name="merge",
    text=(
        "Compare the new statement with the stored ones and choose what to do.\n"
        "ADD: it is new.\n"
        "UPDATE: it replaces one that no longer holds; give the id of that one.\n"
        "DELETE: it says that one is withdrawn; give its id.\n"
        "NONE: it is stored already.\n"
        'Reply as JSON: {{"event": "...", "id": "..."}}\n\n'
        "Stored:\n{memories}\n\n"
        "New: {fact}"
    ),
    operation="merge",
    contract=DECIDE_CONTRACT,
    purpose="Decide whether a new statement is added, replaces a stored one, withdraws one, or is stored already.",
    builds=True,
    layout=DECIDE_LAYOUT,
)

ANSWER_PROMPT = PromptSpec(
    name="answer",
    text=(
        "What agents did, with times. Of two that disagree the later one holds.\n{context}\n\n"
        "Question: {question}\nAnswer in a few words:"
    ),
    operation="answer",
    contract=Contract(placeholders=frozenset({"context", "question"})),
    purpose="Answer the question from the recalled events in one to four words, or with 'unknown' if they do not tell.",
    builds=False,
    layout=Layout(roles={"question": "query"}, lists={"context": bullets}),
)

PROMPTS = {prompt.name: prompt for prompt in (SUMMARISE_PROMPT, MERGE_PROMPT, ANSWER_PROMPT)}
