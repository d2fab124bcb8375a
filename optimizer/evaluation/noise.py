"""How much one candidate's score varies when everything is asked again: the noise floor."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from optimizer.evaluation.evaluator import Outcome

DEVIATIONS = 1.96 * 2**0.5
"""In 95 of 100 cases, noise makes two scores differ by at most this many standard deviations of one."""


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The variation of a score over repetitions.

    Attributes:
        noise: difference up to which two scores on these conversations may be noise, 95 %.
        deviation: the standard deviation of a score, from how each conversation's varies; they vary independently.
        changed: questions whose score was not the same every time.
        questions: how many there are.
        scores: mean score of each repetition, in order; a run's summary has them not.
    """

    noise: float
    deviation: float
    changed: int
    questions: int
    scores: Annotated[tuple[float, ...], Field(exclude=True)] = ()

    @property
    def mean(self) -> float:
        """The mean of `scores`."""
        return statistics.fmean(self.scores)


def noise_floor(repetitions: Sequence[Sequence[Outcome]]) -> NoiseFloor:
    """The noise floor from two or more evaluations, without taint, of one candidate on the same conversations."""
    if len(repetitions) < 2:
        raise ValueError("a noise floor needs two repetitions or more")
    # Over conversations, two repetitions tell more than the two scores do.
    scores_of_conversations = zip(*([outcome.score for outcome in outcomes] for outcomes in repetitions), strict=True)
    spreads = list(map(statistics.stdev, scores_of_conversations))
    judged = [[case.judgement.score for outcome in outcomes for case in outcome.cases] for outcomes in repetitions]
    scores = tuple(map(statistics.fmean, judged))
    counts = [len(outcome.cases) for outcome in repetitions[0]]
    deviation = math.hypot(*(count * spread for count, spread in zip(counts, spreads, strict=True))) / sum(counts)
    return NoiseFloor(
        noise=DEVIATIONS * deviation,
        deviation=deviation,
        changed=sum(len(set(question_scores)) > 1 for question_scores in zip(*judged, strict=True)),
        questions=len(judged[0]),
        scores=scores,
    )
