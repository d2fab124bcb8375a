"""95 % intervals of a score and of a difference in score, with the conversation as unit.

Questions of a conversation share a memory, so how much conversations differ decides. Of a few conversations that happen
to score alike that would say "no uncertainty at all"; so an interval is never narrower than that of as many questions
which are independent of each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

from attribution.confidence_intervals import Z, wilson_interval
from optimizer.evaluation.scores import Interval


def score_interval(units: Sequence[float], questions: Sequence[float]) -> Interval | None:
    """The interval of the mean score over all questions; None for a single conversation, which says nothing of others.

    Wilson's (1927), for the number of independent questions that would vary as much as these conversations do: the
    effective sample size of Korn and Graubard (1998, Survey Methodology 24:193), reduced for the few conversations
    by Student's t, and at most the number of questions.

    Args:
        units: mean score of each conversation, 0 to 1.
        questions: their numbers of questions, in the same order; a mean of them for all weighs them alike.
    """
    count, total = len(units), sum(questions)
    if count < 2:
        return None
    score = sum(unit * weight for unit, weight in zip(units, questions, strict=True)) / total
    spread = sum((weight * (unit - score)) ** 2 for unit, weight in zip(units, questions, strict=True))
    varies = spread * count / (count - 1) / total**2
    effective = score * (1 - score) / varies * (Z / _t_quantile(count - 1)) ** 2 if varies > 0 else math.inf
    low, high = wilson_interval(score, min(total, effective))
    return min(low, score), max(high, score)


def difference_interval(deltas: Sequence[float], questions: int) -> Interval | None:
    """The interval of the mean of paired differences in score; None for a single conversation.

    Student's t over conversations, or where it is wider, the interval of Agresti and Min (2005, Statistics in Medicine
    24:729) for matched questions, of which only as many changed sides as the difference takes.

    Args:
        deltas: of each conversation, -1 to 1.
        questions: asked on either side, of all conversations together.
    """
    count = len(deltas)
    if count < 2:
        return None
    mean = fmean(deltas)
    by_conversation = _t_quantile(count - 1) * math.sqrt(variance(deltas) / count)
    # Half a question is added to each of the four outcomes: right twice, wrong twice, gained, lost.
    trials = questions + 2
    changed, moved = (questions * abs(mean) + 1) / trials, questions * mean / trials
    by_question = Z * math.sqrt(max(0.0, changed - moved**2) / trials)
    reach = max(by_conversation, by_question)
    return max(-1.0, mean - reach), min(1.0, mean + reach)


def _t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, by the expansion of Fisher and Cornish (1960); exact for 1 and 2."""
    if freedom == 1:
        return math.tan(math.pi * 0.475)
    if freedom == 2:
        return 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025))
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
        (79 * Z**9 + 776 * Z**7 + 1482 * Z**5 - 1920 * Z**3 - 945 * Z) / 92160,
    )
    return Z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))
