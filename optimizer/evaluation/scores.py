"""What a candidate scores, and on which conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from optimizer.evaluation.statistics import bootstrap_ci
from tracing.systems.conversations import Conversation

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
Interval = tuple[float, float]
"""Lower and upper bound."""


@dataclass(frozen=True, slots=True)
class Splits:
    """Conversations by their use: the optimizer learns on `train`, gates on `validation`, and never sees `test`."""

    train: tuple[Conversation, ...]
    validation: tuple[Conversation, ...]
    test: tuple[Conversation, ...]

    def named(self) -> dict[SplitName, tuple[Conversation, ...]]:
        """The three splits, by their names in summaries and metrics."""
        return {"train": self.train, "validation": self.validation, "test": self.test}


@dataclass(frozen=True, slots=True)
class Score:
    """Means over judged questions, each in 0..1.

    Attributes:
        score: the run's primary metric.
        em: exact match.
        f1: token F1.
        contains: an accepted answer is contained in the reply.
        n: number of questions.
        ci: 95 % interval of `score`, bootstrapped over conversations; None for a single conversation.
    """

    score: float
    em: float
    f1: float
    contains: float
    n: int
    ci: Interval | None


def interval_over(units: Sequence[float], *, weights: Sequence[float] | None = None, seed: int = 0) -> Interval | None:
    """95 % bootstrap interval of the mean of one value per conversation; None for one, which says nothing of others.

    With the numbers of their questions as weights, it is that of the mean over all questions.
    """
    return bootstrap_ci(units, seed=seed, weights=weights) if len(units) > 1 else None
