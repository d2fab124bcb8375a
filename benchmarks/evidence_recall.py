"""How much of the annotated evidence the likeliest turns hold, by words as memtune ranks them, by embeddings, or both.

Both is the sum of the two scores, each as a part of its highest (CombSUM, Fox and Shaw 1994).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Literal, get_args

from attribution.evidence_index import EvidenceIndex, Query
from benchmarks.labelled_cases import Suite
from tracing.llm.models import EmbeddingModel
from tracing.systems.conversations import Conversation

Ranking = Literal["words", "embeddings", "both"]

_MEANING = 0.5
"""What the embeddings count for beside the words, which count 1: chosen with the figures of `EvidenceIndex`."""


class EmbeddedEvidence(EvidenceIndex):
    """The turns of a conversation, ranked by the embeddings of a model too, or by these alone."""

    def __init__(self, conversation: Conversation, embedding: EmbeddingModel, *, by_words: bool) -> None:
        super().__init__(conversation)
        self._embedding, self._by_words = embedding, by_words
        texts = {turn.id: turn.spoken for turn in conversation.turns()}
        self._vectors = dict(zip(texts, embedding.embed(list(texts.values())), strict=True))

    def scores(self, text: str) -> Mapping[str, float]:
        """How likely each turn is to hold what the text asks for."""
        scores: dict[str, float] = defaultdict(float)
        if self._by_words:
            _add(scores, super().scores(text), 1.0)
        _add(scores, self._nearness(text), _MEANING)
        return scores

    def _nearness(self, text: str) -> dict[str, float]:
        """How much nearer each turn is to the text than the others are: e to the power of its standardized cosine.

        Models differ in how near unrelated texts are, and in how far related ones stand out.
        """
        (query_vector,) = self._embedding.embed([text], query=True)
        near = {
            turn: sum(a * b for a, b in zip(query_vector, vector, strict=True))
            for turn, vector in self._vectors.items()
        }
        mean, spread = fmean(near.values()), pstdev(near.values()) or 1.0
        return {turn: math.exp((cosine - mean) / spread) for turn, cosine in near.items()}


def _add(scores: dict[str, float], new_scores: Mapping[str, float], weight: float) -> None:
    """Add what was found, each as a part of the highest, times its weight."""
    highest = max(new_scores.values(), default=1.0)
    for turn, score in new_scores.items():
        scores[turn] += weight * score / highest


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
                conversation = labelled.recording.conversation
                indexes[key] = (
                    EvidenceIndex(conversation)
                    if embedding is None
                    else EmbeddedEvidence(conversation, embedding, by_words=ranking == "both")
                )
            ranked = indexes[key].search(labelled.case, max(tops), query=query)
            for top in tops:
                totals[top] += recall(ranked[:top], labelled.case.question.evidence)
        table[query] = {top: total / len(annotated) for top, total in totals.items()} if annotated else {}
    return table
