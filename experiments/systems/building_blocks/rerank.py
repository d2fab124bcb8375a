"""Reranking by a model: it names the passages that help most, and these come first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field

from experiments.systems.building_blocks.prompt_files import SHARED, prompts_in
from experiments.systems.building_blocks.recall import as_context
from experiments.systems.building_blocks.structured_replies import model_step, number_schema, object_schema
from tracing.llm.models import ChatModel
from tracing.systems.entries import Entry
from tracing.systems.interventions import Step, intervening
from tracing.systems.layouts import Item, Parts
from tracing.systems.texts import Text, noted_again

MAX_RERANK_TOKENS = 96
MOST_NAMED = 12
"""Most passages that a reply names."""


def _best_of(parts: Parts, outputs: Sequence[Item]) -> str:
    """What was kept, as the reply that names its numbers among the passages shown."""
    names = [item.name for item in parts.get("passages", ())]
    best = [str(names.index(item.name) + 1) for item in outputs if item.name in names]
    return json.dumps({"best": best[:MOST_NAMED]})


def _schema(count: int | None = None) -> dict[str, Any]:
    """The form of a reply that names some of so many passages."""
    return object_schema(best={"type": "array", "items": number_schema(count), "maxItems": MOST_NAMED})


RERANK_PROMPT = prompts_in(SHARED, schemas={"rerank": _schema()}, replies={"rerank": _best_of})["rerank"]


class _Best(BaseModel):
    # Many endpoints know the schema's form and not its limits.
    best: Annotated[list[str | int], Field(max_length=4 * MOST_NAMED)]


def rerank(
    query: Text, hits: Sequence[Entry], passages: Sequence[Text], template: str, model: ChatModel, count: int
) -> tuple[list[Entry], list[Text]]:
    """Record a reranking, and return the first `count` of the entries (`hits` as `passages`), also as context.

    Those that the model names come first, in its order, and the others follow in theirs; so an unusable reply changes
    nothing.
    """
    texts = {"query": [query], "passages": passages}
    with model_step(RERANK_PROMPT, template, texts, _Best, model, MAX_RERANK_TOKENS, _schema(len(hits))) as (op, reply):
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
