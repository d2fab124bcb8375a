"""Recall by embedding: the entries nearest to a text, recorded as one `retrieve` operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracing.errors import ModelError
from tracing.graph.execution_graph import Variable
from tracing.llm.models import EmbeddingModel
from tracing.recording.recorder import ActiveOperation, current_recorder, operation
from tracing.systems.conversations import Question
from tracing.systems.interventions import Step, intervening
from tracing.systems.texts import Text, noted


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored memory: its id, text, normalised embedding and the id of the variable that holds it in the trace."""

    id: str
    text: str
    vector: tuple[float, ...]
    variable: str

    def as_json(self) -> dict[str, Any]:
        """JSON form, for a memory's state."""
        return {"id": self.id, "text": self.text, "vector": list(self.vector), "variable": self.variable}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """The entry that `as_json` wrote."""
        return cls(data["id"], data["text"], tuple(data["vector"]), data["variable"])


def similarity(left: Sequence[float], right: Sequence[float]) -> float:
    """Cosine of two normalised vectors.

    Raises:
        ModelError: they are not of one model.
    """
    check_lengths(left, right)
    return sum(a * b for a, b in zip(left, right, strict=True))


def check_lengths(left: Sequence[float], right: Sequence[float]) -> None:
    """Make sure that two vectors can be compared.

    Raises:
        ModelError: they are of different length, and so of different models.
    """
    if len(left) != len(right):
        raise ModelError(
            f"a stored memory has a vector of {len(right)} numbers, and the text it is compared with one of "
            f"{len(left)}: another embedding model answers under the same name; give it a name of its own, or delete "
            "the built memories (the folder `cache/memories` of the home)"
        )


def nearest(vector: Sequence[float], entries: Sequence[Entry], count: int) -> list[tuple[Entry, float]]:
    """The `count` entries nearest to `vector` with their similarity, nearest first; ties keep storage order."""
    scored = [(entry, similarity(vector, entry.vector)) for entry in entries]
    return sorted(scored, key=lambda pair: -pair[1])[:count]


def recorded(entries: Sequence[Entry]) -> list[Variable]:
    """The variables of the current trace that hold these entries; none where nothing is traced."""
    recorder = current_recorder()
    known = recorder.graph.variables if recorder else {}
    return [known[entry.variable] for entry in entries if entry.variable in known]


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
