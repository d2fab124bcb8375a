"""Statistics over few units: intervals of a score and of a difference, exact sign-flip tests, and power.

The unit is the conversation: questions of one conversation share a memory, so they are not independent. A value here is
one number per unit, such as the difference of two mean scores (-1 to 1). How much units differ decides. Of a few
conversations that happen to score alike that would say "no uncertainty at all"; so an interval is never narrower than
that of as many questions which are independent of each other.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import NormalDist, fmean, variance
from typing import Literal

from attribution.confidence_intervals import Z, wilson_interval
from optimizer.evaluation.scores import Interval

Alternative = Literal["two-sided", "greater"]

EXACT_SUMS = 2**16
"""Most distinct sums the exact test follows: always enough for 16 units, and for hundreds that share a lattice."""

DRAWS = 20_000
"""Random sign assignments where the exact distribution is too wide."""

_LEAST_P = 0.001
_QUANTUM = 1e-9
_QUICK_SUMS = 2**12


def sign_flip_p(deltas: Sequence[float], alternative: Alternative = "two-sided", *, seed: int = 0) -> float:
    """P-value of the paired sign-flip (randomisation) test that the mean of `deltas` is zero.

    Under the null hypothesis that both sides of each pair are exchangeable, every assignment of signs to the deltas
    is equally likely (Fisher 1935, The Design of Experiments, section 21). The p-value is the share of assignments
    whose sum is at least as extreme as the observed one, itself included. Deltas are rounded to 1e-9, so that ties of
    decimal fractions count as ties.

    Args:
        deltas: one difference per unit, challenger minus champion.
        alternative: "greater" asks for a positive mean, "two-sided" for a mean that is not zero.
        seed: of the Monte Carlo draws, used only if there are too many sums to count exactly (beyond 16 units).

    Returns:
        A probability in (0, 1]; 1.0 without deltas. Never under 1/2**n: three units can't show anything at 5 %.

    Raises:
        ValueError: a delta is not finite.
    """
    units = _quanta(deltas)
    if not units:
        return 1.0
    observed = sum(units)
    sums = _distribution(units, EXACT_SUMS)
    if sums is None:
        return _monte_carlo(units, observed, alternative, seed)
    return _share(sums, observed, alternative)


def p_text(p_value: float | None) -> str:
    """A p value as `0.012`; `< 0.001` where three digits would be none; a dash for none."""
    if p_value is None:
        return "–"
    return "< 0.001" if p_value < _LEAST_P else f"{p_value:.3f}"


def power(deltas: Sequence[float], alpha: float = 0.05, *, simulations: int = 1000, seed: int = 0) -> float:
    """Chance that a repeat of the same size finds the observed effect significant at `alpha`, two-sided.

    Simulated: each repeat draws as many units from `deltas` with replacement and tests them like `sign_flip_p`. It
    assumes that the observed effect is the true one, so after a small p-value it is too high; read it as "could a
    comparison of this size have seen an effect like this", not as further evidence.

    Returns:
        The share of significant repeats; 0.0 without deltas.
    """
    if not deltas:
        return 0.0
    rng = random.Random(seed)  # noqa: S311 (statistics, not secrets)
    units = _quanta(deltas)
    significant = sum(_quick_p(rng.choices(units, k=len(units))) <= alpha for _ in range(simulations))
    return significant / simulations


def _quanta(deltas: Sequence[float]) -> list[int]:
    if not all(math.isfinite(delta) for delta in deltas):
        raise ValueError("a delta is not finite: leave out units that could not be scored")
    return [round(delta / _QUANTUM) for delta in deltas]


def _quick_p(units: Sequence[int]) -> float:
    """The p-value for simulations: exact where that is cheap, else by the normal approximation of the same test."""
    observed = sum(units)
    sums = _distribution(units, _QUICK_SUMS)
    if sums is not None:
        return _share(sums, observed, "two-sided")
    # Under random signs the sum has mean 0 and this variance.
    return math.erfc(abs(observed / math.sqrt(sum(unit * unit for unit in units))) / math.sqrt(2))


def _share(sums: Mapping[int, int], observed: int, alternative: Alternative) -> float:
    extreme = sum(count for total, count in sums.items() if _as_extreme(total, observed, alternative))
    return extreme / sum(sums.values())


def _distribution(units: Sequence[int], most: int) -> dict[int, int] | None:
    """How many sign assignments give each sum; None where there may be more than `most` sums to follow."""
    lattice = sum(map(abs, units)) // max(math.gcd(*units), 1) + 1
    if min(1 << len(units), lattice) > most:
        return None
    sums = {0: 1}
    for unit in units:
        wider: dict[int, int] = {}
        for total, count in sums.items():
            wider[total + unit] = wider.get(total + unit, 0) + count
            wider[total - unit] = wider.get(total - unit, 0) + count
        sums = wider
    return sums


def _monte_carlo(units: Sequence[int], observed: int, alternative: Alternative, seed: int) -> float:
    rng = random.Random(seed)  # noqa: S311 (statistics, not secrets)
    hits = 0
    for _ in range(DRAWS):
        signs = rng.getrandbits(len(units))
        total = sum(unit if signs >> position & 1 else -unit for position, unit in enumerate(units))
        hits += _as_extreme(total, observed, alternative)
    # The observed assignment is one of the possible ones (Phipson and Smyth 2010): p is never zero.
    return (hits + 1) / (DRAWS + 1)


def _as_extreme(total: int, observed: int, alternative: Alternative) -> bool:
    return total >= observed if alternative == "greater" else abs(total) >= abs(observed)


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


def lower_bound(deltas: Sequence[float], questions: int, level: float = 0.05) -> float | None:
    """The one-sided lower bound of the mean of paired differences in score; None for a single conversation.

    Student's t over conversations, or where it is lower, the score bound for matched questions (Tango 1998, Statistics
    in Medicine 17:891), of which only as many changed sides as the difference takes. So replies that are all the same
    do not show that no question is ever lost: of 100 they leave a bound of -0.026. What is lost rarely, but several
    questions of a conversation at once, is seen only if it happens.

    Args:
        deltas: of each conversation, -1 to 1.
        questions: asked on either side, of all conversations together.
        level: how often the true mean may be below it.
    """
    count = len(deltas)
    if count < 2:
        return None
    mean, z = fmean(deltas), NormalDist().inv_cdf(1 - level)
    by_conversation = mean - _t_quantile(count - 1, 1 - level) * math.sqrt(variance(deltas) / count)
    by_question = (
        -wilson_interval(-mean, questions, z=z)[1] if mean < 0 else (questions * mean - z * z) / (questions + z * z)
    )
    return max(-1.0, min(by_conversation, by_question))


def _t_quantile(freedom: int, share: float = 0.975) -> float:
    """A quantile of Student's t, by the expansion of Fisher and Cornish (1960); exact for 1 and 2."""
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    if freedom == 2:
        return (2 * share - 1) * math.sqrt(2 / (4 * share * (1 - share)))
    z = NormalDist().inv_cdf(share)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))
