"""Retrieval: stored entries ranked for a query by meaning, by words or by both, and recorded as an operation."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast, get_args

from experiments.systems.building_blocks.choices import check_choice
from tracing.errors import ConfigError
from tracing.graph.execution_graph import Variable
from tracing.llm.models import EmbeddingModel
from tracing.recording.operations import ActiveOperation, operation
from tracing.recording.trace_context import variable
from tracing.systems.conversations import Question
from tracing.systems.entries import Entry, similarity
from tracing.systems.interventions import Step, intervening
from tracing.systems.protocol import Memory
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

    _, context = recorded_retrieval("retrieve", {"query": [query]}, entries, by_meaning)
    return query, context


def recorded_retrieval(
    name: str,
    queries: Mapping[str, Sequence[Text]],
    entries: Sequence[Entry],
    find: Callable[[], list[Entry]],
    texts: Mapping[Entry, str] | None = None,
) -> tuple[list[Entry], list[Text]]:
    """Record a retrieval called `name`, and return the entries that it found, also as context.

    Args:
        queries: role → the queries it is asked with; the first is the question.
        entries: all that are stored.
        find: finds the entries, best first.
        texts: entry → its text as context, if it is another one.
    """
    query = next(iter(queries.values()))[0].variable
    inputs = {**{role: variables_of(texts) for role, texts in queries.items()}, "entries": recorded(entries)}
    with operation(name, kind="retrieval", inputs=inputs) as op:
        hits = intervening().retrieved(Step(name, op.id), query, entries, find())
        return hits, as_context(op, [replace(hit, text=(texts or {}).get(hit, hit.text)) for hit in hits])


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


def memory_of(entries: Iterable[Entry]) -> Memory:
    """A memory of these entries, and nothing else."""
    return Memory({"entries": [entry.as_json() for entry in entries]})


def memory_of_texts(texts: Sequence[str], prefix: str, embedding: EmbeddingModel) -> Memory:
    """A memory of exactly these texts; for the prefix see `given_entries`."""
    return memory_of(given_entries(texts, embedding.embed(texts) if texts else [], prefix))


def entries_of(memory: Memory) -> list[Entry]:
    """The entries of a memory, in the order in which they were stored."""
    return [Entry.from_json(data) for data in memory.state["entries"]]


Retrieval = Literal["dense", "sparse", "hybrid"]
"""By embedding, by words, or by both, fused."""

RRF = 60
"""The constant of reciprocal rank fusion (Cormack et al. 2009)."""

# Languages that write no spaces are searched by character.
_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af])"
)


def check_retrieval(value: str) -> Retrieval:
    """The value, if it is a way of retrieval."""
    choices: tuple[Retrieval, ...] = get_args(Retrieval)
    check_choice("retrieval", value, choices)
    return cast("Retrieval", value)


def ranked(retrieval: Retrieval, text: str, entries: Sequence[Entry], embedding: EmbeddingModel) -> list[Entry]:
    """The entries for one query, best first. By words alone, entries that share none with it are left out.

    Raises:
        ModelError, BudgetExceededError: the call of the embedding model failed.
        ConfigError: Python's SQLite cannot search by words.
    """
    return fused(rankings(retrieval, [text], entries, embedding))


def rankings(
    retrieval: Retrieval,
    texts: Sequence[str],
    entries: Sequence[Entry],
    embedding: EmbeddingModel,
    count: int | None = None,
) -> list[list[Entry]]:
    """One ranking of the entries for each query and each way of searching, with at most `count` entries each.

    Raises as `ranked`.
    """
    lists: list[list[Entry]] = []
    if retrieval != "sparse":
        vectors = embedding.embed(texts, query=True)
        lists += [[entry for entry, _ in nearest(vector, entries, len(entries))] for vector in vectors]
    if retrieval != "dense":
        lists += by_words(texts, entries)
    return [ranking[:count] for ranking in lists]


def by_words(texts: Sequence[str], entries: Sequence[Entry]) -> list[list[Entry]]:
    """For each query the entries that share a word with it, by BM25 (SQLite's FTS5, k1 1.2, b 0.75), best first.

    Words are compared by their stems (Porter's, for English) and without accents; ties keep storage order.

    Raises:
        ConfigError: Python's SQLite was built without FTS5.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as store:
        try:
            store.execute("CREATE VIRTUAL TABLE entries USING fts5(text, tokenize='porter unicode61')")
        except sqlite3.OperationalError as error:
            raise ConfigError(
                f"system_settings.retrieval: this Python's SQLite cannot search by words ({error}); choose dense"
            ) from None
        rows = [(at, _spaced(entry.text)) for at, entry in enumerate(entries)]
        store.executemany("INSERT INTO entries (rowid, text) VALUES (?, ?)", rows)
        return [[entries[at] for at in _matches(store, text)] for text in texts]


def fused(lists: Sequence[Sequence[Entry]]) -> list[Entry]:
    """Several rankings as one, by the sum of 1 / (60 + rank); ties keep the order of the first ranking."""
    scores: dict[str, float] = {}
    entries: dict[str, Entry] = {}
    for ranking in lists:
        for rank, entry in enumerate(ranking, start=1):
            entries[entry.id] = entry
            scores[entry.id] = scores.get(entry.id, 0.0) + 1 / (RRF + rank)
    return [entries[name] for name in sorted(scores, key=lambda name: -scores[name])]


def _matches(store: sqlite3.Connection, text: str) -> list[int]:
    words = dict.fromkeys(word for word in re.findall(r"\w+", _spaced(text)) if any(map(str.isalnum, word)))
    if not words:
        return []
    either = " OR ".join(f'"{word}"' for word in words)
    rows = store.execute("SELECT rowid FROM entries WHERE entries MATCH ? ORDER BY bm25(entries), rowid", (either,))
    return [row[0] for row in rows]


def _spaced(text: str) -> str:
    """A text as it is indexed; half a surrogate pair, which SQLite cannot store, becomes a question mark."""
    return _UNSPACED.sub(r" \1 ", text.encode("utf-8", "replace").decode())
