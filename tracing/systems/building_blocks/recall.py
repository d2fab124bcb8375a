"""Retrieval by embedding: the entries nearest to a text, recorded as one `retrieve` operation."""

from __future__ import annotations

from collections.abc import Sequence

from tracing.graph.execution_graph import Variable
from tracing.llm.models import EmbeddingModel
from tracing.recording.recorder import ActiveOperation, operation
from tracing.systems.conversations import Question
from tracing.systems.entries import Entry, similarity
from tracing.systems.interventions import Step, intervening
from tracing.systems.texts import Text, noted, recalled


def nearest(vector: Sequence[float], entries: Sequence[Entry], count: int) -> list[tuple[Entry, float]]:
    """The `count` entries nearest to `vector` with their similarity, nearest first; ties keep storage order."""
    scored = [(entry, similarity(vector, entry.vector)) for entry in entries]
    return sorted(scored, key=lambda pair: -pair[1])[:count]


def recorded(entries: Sequence[Entry]) -> list[Variable]:
    """The variables of these entries in the current trace; none if nothing is traced."""
    return recalled(entry.variable for entry in entries)


def retrieve(
    question: Question, entries: Sequence[Entry], embedding: EmbeddingModel, count: int
) -> tuple[Text, list[Text]]:
    """Record and return the query and the `count` entries nearest to it as context, nearest first."""
    query = noted(question.question, name=question.id, kind="query")
    with operation("retrieve", kind="retrieval", inputs={"query": query.variable, "entries": recorded(entries)}) as op:
        (vector,) = embedding.embed([question.question], query=True)
        found = [entry for entry, _ in nearest(vector, entries, count)]
        found = intervening().retrieved(Step("retrieve", op.id), query.variable, entries, found)
        return query, as_context(op, found)


def as_context(op: ActiveOperation, found: Sequence[Entry]) -> list[Text]:
    """The entries as outputs of the operation that found them, best first."""
    return [
        Text(
            entry.text,
            op.output("context", entry.text, name=entry.id, kind="context", entry=entry.variable, rank=rank),
        )
        for rank, entry in enumerate(found, start=1)
    ]


def given_context(question: Question, context: Sequence[str]) -> tuple[Text, list[Text]]:
    """The query and a context that was given instead of retrieved."""
    query = noted(question.question, name=question.id, kind="query")
    given = [noted(text, name=f"given{rank}", kind="context", rank=rank) for rank, text in enumerate(context, start=1)]
    return query, given
