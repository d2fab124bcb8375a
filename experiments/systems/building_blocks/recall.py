"""Retrieval by embedding: the entries nearest to a text, recorded as one `retrieve` operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tracing.graph.execution_graph import Variable
from tracing.llm.models import EmbeddingModel
from tracing.recording.recorder import ActiveOperation, operation, variable
from tracing.systems.conversations import Question
from tracing.systems.entries import Entry, similarity
from tracing.systems.interventions import Step, intervening
from tracing.systems.texts import Text, noted, recalled, variables_of


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

    def by_meaning() -> list[Entry]:
        (vector,) = embedding.embed([question.question], query=True)
        return [entry for entry, _ in nearest(vector, entries, count)]

    _, context = found_as_context("retrieve", {"query": [query]}, entries, by_meaning)
    return query, context


def found_as_context(
    name: str, queries: Mapping[str, Sequence[Text]], entries: Sequence[Entry], find: Callable[[], list[Entry]]
) -> tuple[list[Entry], list[Text]]:
    """Record a retrieval called `name`, and return the entries that it found, also as context.

    Args:
        queries: role → the queries it is asked with; the first is the question.
        entries: all that are stored.
        find: finds the entries, best first.
    """
    query = next(iter(queries.values()))[0].variable
    inputs = {**{role: variables_of(texts) for role, texts in queries.items()}, "entries": recorded(entries)}
    with operation(name, kind="retrieval", inputs=inputs) as op:
        hits = intervening().retrieved(Step(name, op.id), query, entries, find())
        return hits, as_context(op, hits)


def as_context(op: ActiveOperation, hits: Sequence[Entry]) -> list[Text]:
    """The entries as outputs of the operation that found them, best first."""
    return [
        Text(
            entry.text,
            op.output("context", entry.text, name=entry.id, kind="context", entry=entry.variable, rank=rank),
        )
        for rank, entry in enumerate(hits, start=1)
    ]


def given_entries(texts: Sequence[str], vectors: Sequence[Sequence[float]], prefix: str) -> list[Entry]:
    """Entries that were given instead of built; their ids are the prefix with a number from 1 on."""
    return [
        Entry(name := f"{prefix}{number}", text, tuple(vector), variable(text, name=name, kind="memory_entry").id)
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True), start=1)
    ]
