"""The verdict on the champion, from conversations that the optimizer never saw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist, fmean
from typing import Literal

from optimizer.evaluation.evaluator import Outcome, tokens_a_question
from optimizer.evaluation.noise import NoiseFloor
from optimizer.evaluation.scores import Interval, Score
from optimizer.evaluation.statistics import difference_interval, lower_bound, power, sign_flip_p

VerdictName = Literal["improved", "cheaper", "inconclusive", "regressed", "worse"]

SIGNIFICANCE = 0.05
"""Two-sided level of the verdict on the test conversations."""


SPREAD = 0.2
"""Standard deviation over conversations of the difference between two sets of prompts, as often seen with ten questions
a conversation."""

WANTED_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Difference:
    """The champion against the baseline on the held-out conversations.

    Attributes:
        verdict: by a two-sided sign-flip test at 5 % with conversations as units; or, where fewer tokens were
            sought, as of `cheaper_of`.
        delta: champion minus baseline in the primary metric, mean over conversations.
        delta_ci: 95 % interval of `delta` (`optimizer.evaluation.statistics`); None for a single conversation, and if
            the champion is the baseline, so that there is no difference to estimate.
        p_value: of that test.
    """

    verdict: VerdictName
    delta: float
    delta_ci: Interval | None
    p_value: float


@dataclass(frozen=True, slots=True)
class Verdict(Difference):
    """The difference that a run is judged by, and what is known about it.

    If the search changed settings of the system, the champion has them and the baseline has the run's own.

    Attributes:
        power: chance that the test finds an effect of the observed size with this many conversations.
        noise: how much the score of the same prompts varies on these conversations; None for a task model that does
            not sample, or if it could not be measured.
        prompts_alone: the champion's prompts against the baseline's, both under the run's own settings; None if no
            setting was changed, or if it could not be measured.
        settings_alone: the champion's settings against the run's own, both with the baseline's prompts; None as well.
        margin: how much lower the score may be where fewer tokens were sought; None where a better score was.
        bound: the difference is at least this (one-sided, 95 %); None without a margin, and for a single conversation.
        score: of the champion on these conversations; None where it is not told.
        tokens: that a question takes, as `optimizer.tuning.results.RunFigures.tokens_per_question`.
    """

    power: float
    noise: NoiseFloor | None = None
    prompts_alone: Difference | None = None
    settings_alone: Difference | None = None
    margin: float | None = None
    bound: float | None = None
    score: Score | None = None
    tokens: Mapping[str, float] = field(default_factory=dict)


NO_CHANGE = Verdict("inconclusive", 0.0, None, 1.0, 0.0)
"""The verdict if the champion is the baseline: there is no difference to test."""


def verdict_of(base: Sequence[Outcome], champion: Sequence[Outcome], *, seed: int = 0) -> Verdict:
    """Compare two candidates on the same conversations: the paired difference, with the conversation as unit."""
    deltas = [new.score - old.score for old, new in zip(base, champion, strict=True)]
    return verdict_over(deltas, sum(len(outcome.cases) for outcome in base), seed=seed)


def verdict_over(deltas: Sequence[float], questions: int, *, seed: int = 0) -> Verdict:
    """The verdict on differences in score, one for each conversation, from so many questions in all."""
    # Shares that cancel out must sum to exactly zero.
    delta = round(sum(deltas) / len(deltas), 9)
    p_value = sign_flip_p(deltas, "two-sided", seed=seed)
    name: VerdictName = "inconclusive"
    if p_value <= SIGNIFICANCE:
        name = "improved" if delta > 0 else "regressed"
    return Verdict(name, delta, difference_interval(deltas, questions), p_value, power(deltas, SIGNIFICANCE, seed=seed))


def cheaper_of(base: Sequence[Outcome], champion: Sequence[Outcome], margin: float, *, seed: int = 0) -> Verdict:
    """The verdict where fewer tokens are sought, at a score that is lower by less than `margin` (0 to 1).

    - *cheaper*: the champion takes fewer tokens, and its score is shown not to be lower by the margin (non-inferior,
      one-sided at 5 % over conversations).
    - *worse*: that is not shown, and its score is shown to be lower.
    - *inconclusive*: neither; and where the baseline scores no more than the margin, so that nothing could be lost.
    """
    verdict = verdict_of(base, champion, seed=seed)
    deltas = [new.score - old.score for old, new in zip(base, champion, strict=True)]
    bound = lower_bound(deltas, sum(len(outcome.cases) for outcome in base), SIGNIFICANCE)
    name: VerdictName = "worse" if verdict.verdict == "regressed" else "inconclusive"
    could_lose = fmean(outcome.score for outcome in base) > margin
    if could_lose and bound is not None and bound > -margin and tokens_a_question(champion) < tokens_a_question(base):
        name = "cheaper"
    return replace(verdict, verdict=name, margin=margin, bound=bound)


def fewest_questions(margin: float) -> int:
    """Test questions without which a champion whose replies are all judged the same is not shown to be no worse."""
    square = NormalDist().inv_cdf(1 - SIGNIFICANCE) ** 2
    return math.floor(square * (1 - margin) / margin) + 1


def fewest_conversations() -> int:
    """Test conversations without which no verdict but *inconclusive* is possible, however great the effect."""
    return math.ceil(math.log2(2 / SIGNIFICANCE))


def detectable(conversations: int) -> float | None:
    """The least true gain that a test of this many conversations finds in `WANTED_POWER` of runs; None if it never can.

    By the normal approximation of the sign-flip test, with a spread of `SPREAD`.
    """
    if conversations < fewest_conversations():
        return None
    normal = NormalDist()
    return (normal.inv_cdf(1 - SIGNIFICANCE / 2) + normal.inv_cdf(WANTED_POWER)) * SPREAD / math.sqrt(conversations)
