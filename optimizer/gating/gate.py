"""The validation gate: a cheap, paired filter between the champion and one challenger.

It is a filter, not a proof: at 20 % one in five useless prompts gets through. The proof is the test on conversations
the optimizer never saw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optimizer.evaluation.statistics import sign_flip_p

if TYPE_CHECKING:
    from attribution.cases import Case
    from optimizer.evaluation.evaluator import Outcome

GATE_LEVEL = 0.20
"""One-sided level. At 5 % all of six conversations would have to improve; a filter must let smaller steps through."""


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


def decide(
    champion: Sequence[Outcome], challenger: Sequence[Outcome], seed: Sequence[Outcome] | None = None
) -> GateDecision:
    """Compare challenger and champion on the same conversations.

    Accepted when all of these hold: every conversation could be scored on both sides; the mean difference is
    positive; the one-sided exact sign-flip p over conversations is at most `GATE_LEVEL`; and the anchors hold.
    Anchors are the questions the champion passes (and the seed too, where `seed` is given): what works for every
    version so far. At most one anchor may be lost for every two questions gained, so that a change which merely
    shuffles right and wrong answers, and comes out slightly ahead by luck, stays out.

    Raises:
        ValueError: the two sides (or the seed) do not hold the same conversations.
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
    deltas = [new[name].score - old[name].score for name in old]
    # Shares that cancel out must sum to exactly zero.
    delta = round(sum(deltas) / len(deltas), 9) if deltas else 0.0
    p_value = sign_flip_p(deltas, "greater")
    now, before = _passes(new), _passes(old)
    anchors = before & _passes(base)
    lost, gained = len(anchors - now), len(now - before)
    size = f"{delta:+.3f} over {len(deltas)} conversations, one-sided p {p_value:.3f}"
    figures = f"{size}, {gained} questions gained, {lost} anchors lost"
    if delta <= 0:
        return GateDecision(False, delta, p_value, lost, f"rejected, not better: {figures}")
    if p_value > GATE_LEVEL:
        return GateDecision(False, delta, p_value, lost, f"rejected, within noise: {figures}")
    if 2 * lost > gained:
        return GateDecision(False, delta, p_value, lost, f"rejected, loses too many anchors: {figures}")
    return GateDecision(True, delta, p_value, lost, f"accepted: {figures}")


def behind(champion: Sequence[Outcome], challenger: Sequence[Outcome]) -> GateDecision | None:
    """The rejection of a challenger that is not ahead on the first of its conversations; None if it is.

    An interim look halves the cost of a useless finalist. It can only reject, so it never lets another through.

    Raises:
        ValueError: the two sides do not hold the same conversations.
    """
    decision = decide(champion, challenger)
    if decision.delta > 0:
        return None
    reason = decision.reason.replace("rejected, not better", "rejected at half-time, not ahead")
    return replace(decision, reason=reason)


def _by_conversation(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    return {outcome.conversation.id: outcome for outcome in outcomes}


def _passes(outcomes: dict[str, Outcome]) -> set[tuple[str, str]]:
    return {(case.conversation, case.question.id) for case in _cases(outcomes) if case.passed}


def _cases(outcomes: dict[str, Outcome]) -> Iterator[Case]:
    for outcome in outcomes.values():
        if outcome.tainted is None:
            yield from outcome.cases
