"""Reranking by a model: it names the passages that help most, and these come first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from experiments.systems.building_blocks.recall import as_context
from experiments.systems.building_blocks.structured_replies import parsed_reply, read_as
from tracing.llm.models import ChatModel
from tracing.recording.operations import operation
from tracing.recording.trace_context import variable
from tracing.systems.entries import Entry
from tracing.systems.interventions import Step, intervening
from tracing.systems.layouts import Item, Layout, Parts, numbered
from tracing.systems.prompts import Contract, PromptSpec, render
from tracing.systems.texts import Text, noted_again, variables_of

MAX_RERANK_TOKENS = 96
MOST_NAMED = 12
"""Most passages that a reply names."""


def _best_of(parts: Parts, outputs: Sequence[Item]) -> str:
    """What was kept, as the reply that names its numbers among the passages shown."""
    names = [item.name for item in parts.get("passages", ())]
    best = [str(names.index(item.name) + 1) for item in outputs if item.name in names]
    return json.dumps({"best": best[:MOST_NAMED]})


RERANK_PROMPT = PromptSpec(
    name="rerank",
    text=(
        "Passages:\n{passages}\n\n"
        "Question: {question}\n"
        "Give the numbers of the passages that help to answer the question, the most helpful first.\n"
        'Reply as JSON: {{"best": ["...", "..."]}}'
    ),
    operation="rerank",
    contract=Contract(
        placeholders=frozenset({"passages", "question"}),
        reply_schema={
            "type": "object",
            "properties": {"best": {"type": "array", "items": {"type": "string"}, "maxItems": MOST_NAMED}},
            "required": ["best"],
            "additionalProperties": False,
        },
        markers=('"best"',),
    ),
    purpose="Name the passages that hold what the question asks for, the most helpful first.",
    builds=False,
    layout=Layout(roles={"question": "query"}, lists={"passages": numbered}, reply=_best_of),
)


class _Best(BaseModel):
    # Many endpoints know the schema's form and not its limits.
    best: Annotated[list[str | int], Field(max_length=4 * MOST_NAMED)]


_read = read_as(_Best)


def rerank(
    query: Text, hits: Sequence[Entry], passages: Sequence[Text], template: str, model: ChatModel, count: int
) -> tuple[list[Entry], list[Text]]:
    """Record a reranking, and return the first `count` entries, also as context.

    Those that the model names come first, in its order, and the others follow in theirs; so an unusable reply changes
    nothing.

    Args:
        query: the question.
        hits: entries, best first.
        passages: the same as context.
        template: the prompt.
        model: that is asked.
        count: how many are kept.
    """
    prompt = variable(template, name="rerank", kind="prompt")
    inputs = {"query": query.variable, "passages": variables_of(passages), "prompt": prompt}
    with operation("rerank", kind="llm", inputs=inputs) as op:
        listed = numbered([passage.text for passage in passages])
        request = render(template, {"passages": listed, "question": query.text})
        reply = parsed_reply(_read, model, request, _schema_for(len(hits)), MAX_RERANK_TOKENS, op)
        by_number = {str(number): entry for number, entry in enumerate(hits, start=1)}
        named = [by_number[str(answer)] for answer in (reply.best if reply else ()) if str(answer) in by_number]
        best = list({entry.id: entry for entry in (*named, *hits)}.values())[:count]
        best = intervening().retrieved(Step("rerank", op.id), query.variable, hits, best)
        return best, as_context(op, best)


def rerank_again(parts: Parts, template: str, model: ChatModel, count: int) -> None:
    """Rerank the recorded passages for the recorded question under the prompt `template`."""
    (query,) = noted_again(parts["question"])
    passages = noted_again(parts["passages"])
    entries = [Entry(passage.variable.name, passage.text, (), passage.variable.id) for passage in passages]
    rerank(query, entries, passages, template, model, count)


def _schema_for(count: int) -> Mapping[str, Any]:
    schema = json.loads(json.dumps(RERANK_PROMPT.contract.reply_schema))
    schema["properties"]["best"]["items"]["enum"] = [str(number) for number in range(1, count + 1)]
    return dict(schema)
