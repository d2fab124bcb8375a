"""The gate: a cheap, paired filter between the champion and one challenger, in one decision or in several looks.

It is a filter, not a proof: at 20 % one in five useless prompts may get through. The proof is the test on conversations
the optimizer never saw. `memtune bench gate` simulates both together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from attribution.confidence_intervals import wilson_interval
from optimizer.evaluation.statistics import sign_flip_p

if TYPE_CHECKING:
    from attribution.cases import Case
    from optimizer.evaluation.evaluator import Outcome

GATE_LEVEL = 0.20
"""One-sided level. At 5 % all of six conversations would have to improve; a filter must let smaller steps through."""

EARLY_LEVEL = 0.05
"""The part of it that the look at half of the conversations spends; the last look spends the rest (Bonferroni)."""

FIRST_LOOK, FEWEST_LOOKED_AT = 4, 6
"""Conversations before the first look; and how many there must be in all for more than one look."""

SLACK = 0.05
"""How far behind a challenger may be at the first look: four conversations can hide a gain of that size."""

ANCHORS_LOST = 0.4
"""Share of the anchors from which a challenger counts as worse on what worked."""

SWAPPED = 0.2
"""Share of anchors lost among what a challenger gained or lost from which it counts as trading answers for others."""


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The gate's decision on a challenger.

    Attributes:
        accepted: True if the challenger becomes champion.
        delta: mean over conversations of challenger minus champion score.
        p_value: one-sided exact sign-flip p over conversations.
        regressed_anchors: questions that the seed and the champion answer and the challenger does not.
        reason: the decision in one line.
    """

    accepted: bool
    delta: float
    p_value: float
    regressed_anchors: int
    reason: str


@dataclass(frozen=True, slots=True)
class Paired:
    """A challenger beside the champion on the same conversations.

    Attributes:
        deltas: challenger minus champion score, one for each conversation.
        gained: questions that only the challenger passes.
        lost: anchors that the challenger does not pass.
        anchors: questions that the champion passes, and the seed too: what works for every version so far.
    """

    deltas: tuple[float, ...]
    gained: int
    lost: int
    anchors: int

    @property
    def delta(self) -> float:
        """The mean difference."""
        # Shares that cancel out must sum to exactly zero.
        return round(sum(self.deltas) / len(self.deltas), 9) if self.deltas else 0.0


def decide(
    champion: Sequence[Outcome], challenger: Sequence[Outcome], seed: Sequence[Outcome] | None = None
) -> GateDecision:
    """Compare challenger and champion on the same conversations, in one decision at `GATE_LEVEL`.

    Accepted when every conversation could be scored on both sides, and `judged` accepts. Without `seed`, all questions
    that the champion passes are anchors.

    Raises:
        ValueError: the two sides (or the seed) do not hold the same conversations.
    """
    found = paired(champion, challenger, seed)
    return found if isinstance(found, GateDecision) else judged(found, GATE_LEVEL)


def judged(paired: Paired, level: float) -> GateDecision:
    """The decision at a one-sided level.

    Accepted when the mean difference is positive, the one-sided exact sign-flip p over conversations is at most
    `level`, and the anchors hold (`anchors_hold`).
    """
    delta, p_value = paired.delta, sign_flip_p(paired.deltas, "greater")
    size = f"{delta:+.3f} over {len(paired.deltas)} conversations, one-sided p {p_value:.3f}"
    figures = f"{size}, {paired.gained} questions gained, {paired.lost} of {paired.anchors} anchors lost"
    why = "accepted"
    if delta <= 0:
        why = "rejected, not better"
    elif p_value > level:
        why = "rejected, within noise"
    elif not anchors_hold(paired.lost, paired.anchors, paired.gained):
        why = "rejected, loses too many anchors"
    return GateDecision(why == "accepted", delta, p_value, paired.lost, f"{why}: {figures}")


def anchors_hold(lost: int, anchors: int, gained: int = 0) -> bool:
    """Whether what worked still works: none of the anchors is lost, or a non-inferiority test on them.

    The share of anchors that is lost is shown to be at most `ANCHORS_LOST`: its upper limit counts, so that of few
    anchors fewer may be lost. A gain of 0.1 with the usual churn of a rewritten prompt (a third of all answers change)
    loses about a quarter of them. Where nearly nothing worked there are too few anchors to show that; then it is enough
    if those lost are shown to be at most `SWAPPED` of all that were gained or lost.
    """
    return not lost or _upper_limit(lost, anchors) <= ANCHORS_LOST or _upper_limit(lost, lost + gained) <= SWAPPED


def _upper_limit(count: int, total: int) -> float:
    """The one-sided upper limit of a share at `GATE_LEVEL` (Wilson 1927); 0 of nothing."""
    if not total:
        return 0.0
    return wilson_interval(count / total, total, z=NormalDist().inv_cdf(1 - GATE_LEVEL))[1]


def looks(total: int) -> tuple[int, ...]:
    """After how many of `total` conversations a challenger is looked at."""
    return (total,) if total < FEWEST_LOOKED_AT else tuple(sorted({min(FIRST_LOOK, total // 2), total // 2, total}))


def judged_so_far(paired: Paired, total: int) -> GateDecision | None:
    """The decision after the first of `total` conversations; None if it takes more of them.

    The first look only rejects what is more than `SLACK` behind. At half of the conversations, what is not ahead is
    rejected, and what is ahead with p of at most `EARLY_LEVEL` is accepted. The last look decides. A challenger as good
    as the champion is so accepted with a probability of at most `GATE_LEVEL`.
    """
    seen = len(paired.deltas)
    if seen >= total:
        return judged(paired, GATE_LEVEL - (EARLY_LEVEL if len(looks(total)) > 1 else 0.0))
    if seen < total // 2:
        return None if paired.delta >= -SLACK else _early(judged(paired, EARLY_LEVEL))
    decision = judged(paired, EARLY_LEVEL)
    if decision.accepted:
        return decision
    return None if paired.delta > 0 else _early(decision)


def behind(champion: Sequence[Outcome], challenger: Sequence[Outcome]) -> GateDecision | None:
    """The rejection of a challenger that is not ahead on the first of its conversations; None if it is.

    An interim look halves the cost of a useless finalist. It can only reject, so it never lets another through.

    Raises:
        ValueError: the two sides do not hold the same conversations.
    """
    found = paired(champion, challenger)
    if isinstance(found, GateDecision):
        return found
    return None if found.delta > 0 else _early(judged(found, EARLY_LEVEL))


def _early(decision: GateDecision) -> GateDecision:
    return replace(decision, reason=decision.reason.replace("rejected, not better", "rejected early, not ahead"))


def paired(
    champion: Sequence[Outcome], challenger: Sequence[Outcome], seed: Sequence[Outcome] | None = None
) -> Paired | GateDecision:
    """The two sides, or the rejection of what cannot be compared; without `seed`, what the champion passes are anchors.

    Raises:
        ValueError: the sides do not hold the same conversations.
    """
    old, new = _by_conversation(champion), _by_conversation(challenger)
    base = _by_conversation(seed) if seed is not None else old
    if old.keys() != new.keys() or base.keys() != old.keys():
        raise ValueError("champion, challenger and seed must be evaluated on the same conversations")
    for side, outcomes in (("champion", old), ("challenger", new)):
        for name, outcome in outcomes.items():
            if outcome.tainted is not None:
                return GateDecision(
                    False, 0.0, 1.0, 0, f"rejected: {side} could not be scored on {name}: {outcome.tainted}"
                )
    now, before = _passes(new), _passes(old)
    anchors = before & _passes(base)
    deltas = tuple(new[name].score - old[name].score for name in old)
    return Paired(deltas, len(now - before), len(anchors - now), len(anchors))


def _by_conversation(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    return {outcome.conversation.id: outcome for outcome in outcomes}


def _passes(outcomes: dict[str, Outcome]) -> set[tuple[str, str]]:
    return {(case.conversation, case.question.id) for case in _cases(outcomes) if case.passed}


def _cases(outcomes: dict[str, Outcome]) -> Iterator[Case]:
    for outcome in outcomes.values():
        if outcome.tainted is None:
            yield from outcome.cases
