"""How much of the annotated evidence the likeliest turns hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from attribution.evidence_index import EvidenceIndex, Query, Ranking
from benchmarks.labelled_cases import Suite
from tracing.llm.models import EmbeddingModel


def recall(ranked: Sequence[str], annotated: Sequence[str]) -> float:
    """The part of the annotated evidence that was found."""
    return len(set(ranked) & set(annotated)) / len(set(annotated))


def recall_at(
    suite: Suite,
    tops: Sequence[int] = (1, 3, 5, 8),
    ranking: Ranking = "words",
    embedding: EmbeddingModel | None = None,
) -> dict[Query, dict[int, float]]:
    """Mean recall of the annotated evidence by query and number of turns, over the suite's cases that have any."""
    annotated = [labelled for labelled in suite.cases if labelled.case.question.evidence]
    indexes: dict[int, EvidenceIndex] = {}
    table: dict[Query, dict[int, float]] = {}
    for query in get_args(Query):
        totals = dict.fromkeys(tops, 0.0)
        for labelled in annotated:
            key = id(labelled.recording)
            if key not in indexes:
                indexes[key] = EvidenceIndex(labelled.recording.conversation, embedding)
            ranked = indexes[key].search(labelled.case, max(tops), query=query, ranking=ranking)
            for top in tops:
                totals[top] += recall(ranked[:top], labelled.case.question.evidence)
        table[query] = {top: total / len(annotated) for top, total in totals.items()} if annotated else {}
    return table
