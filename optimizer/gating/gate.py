"""The gate: a cheap, paired filter between the champion and one challenger, after a schedule of looks.

It is a filter, not a proof: at 20 % one in five useless prompts may get through, and one in three of those whose
recorded inputs deceive. The proof is the test on conversations the optimizer never saw. The benchmark `gate` simulates
gate and verdict together, without recorded inputs. A decision is an outcome, by which the code decides, and the
sentence that people and files have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist

from attribution.confidence_intervals import wilson_interval
from optimizer.evaluation.evaluator import Outcome
from optimizer.evaluation.statistics import p_text, sign_flip_p


class GateOutcome(StrEnum):
    """What the gate, or whoever decides in its place, decided; as a text, its words in the sentence."""

    ACCEPTED = "accepted"
    UNCOMPARED = "accepted without a comparison"
    NOT_BETTER = "rejected, not better"
    WITHIN_NOISE = "rejected, within noise"
    LOSES_SCORE = "rejected, loses more than the margin"
    NOT_FEWER = "rejected, takes no fewer tokens"
    LOSES_ANCHORS = "rejected, loses too many anchors"
    NOT_AHEAD = "rejected early, not ahead"
    INCOMPARABLE = "rejected"
    UNSCORED = "cannot be scored"
    OUTDONE = "passed, but another gained more"
    OVERTAKEN = "another one was ahead"
    BEST = "the best so far"
    NOT_BEST = "not better than the best so far"
    NOT_TRIED = "not tried"
    DECLINED = "declined by hand"
    UNCONFIRMED = "not ahead again with fresh replies"
    OUT_OF_BUDGET = "the budget ended before its validation"
    OTHER = ""


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The decision on a rewrite; as a text, its sentence.

    Attributes:
        outcome: what was decided.
        detail: the figures or the cause, in words.
        delta: mean over conversations of challenger minus champion score.
        p_value: one-sided exact sign-flip p over conversations.
        regressed_anchors: questions that the baseline and the champion answer and the challenger does not.
        about: what was decided on, if not one rewrite alone, such as `answer and extract together`.
        overruled: the decision that this one takes back.

    Example:
        >>> accepted = GateDecision(GateOutcome.ACCEPTED, "+0.100 over 8 conversations")
        >>> str(GateDecision(GateOutcome.DECLINED, overruled=accepted))
        'declined by hand, though accepted: +0.100 over 8 conversations'
    """

    outcome: GateOutcome
    detail: str = ""
    delta: float = 0.0
    p_value: float = 1.0
    regressed_anchors: int = 0
    about: str = ""
    overruled: GateDecision | None = None

    @classmethod
    def read(cls, sentence: str) -> GateDecision:
        """The decision whose sentence this is, such as that of a file; figures stay in its `detail`."""
        text, _, overruled = sentence.partition(", though ")
        lower = cls.read(overruled) if overruled else None
        for outcome in filter(None, GateOutcome):
            about, _, detail = f"{text}: ".partition(f"{outcome}: ")
            for decision in (
                cls(outcome, detail.removesuffix(": "), about=about.removesuffix(": "), overruled=lower),
                cls(outcome, text.removesuffix(outcome).removesuffix(", "), overruled=lower),
            ):
                if str(decision) == sentence:
                    return decision
        return cls(GateOutcome.OTHER, sentence)

    @property
    def accepted(self) -> bool:
        """Whether the rewrite may become the champion's text."""
        return self.outcome in (GateOutcome.ACCEPTED, GateOutcome.UNCOMPARED)

    def __str__(self) -> str:
        parts = [str(self.outcome), self.detail]
        if self.outcome in (GateOutcome.BEST, GateOutcome.NOT_BEST):
            sentence = ", ".join(filter(None, reversed(parts)))
        else:
            sentence = ": ".join(filter(None, (self.about, *parts)))
        return sentence if self.overruled is None else f"{sentence}, though {self.overruled}"


GATE_LEVEL = 0.20
"""One-sided level. At 5 % all of six conversations would have to improve; a filter must let smaller steps through."""

LOOK_LEVEL = 0.075
"""The level of each of several looks, which together spend no more than `GATE_LEVEL`: what one look sees, those before
have seen in part. Simulated for 6 to 60 conversations, they accept 7 to 13 of 100 challengers that gain nothing."""

LOOKS = (1 / 4, 1 / 3, 1 / 2, 3 / 4, 1.0)
"""The parts of the conversations after which the gate may accept a challenger."""

FIRST_LOOK, FEWEST_LOOKED_AT = 4, 6
"""Conversations before the first look; and how many there must be in all for more than one look."""

DOUBT = 0.05
"""Chance of no gain, by recorded inputs and conversations together, up to which a look accepts what conversations alone
show at `GATE_LEVEL`. A choice."""

SLACK = 0.05
"""How far behind a challenger may be at the first look: four conversations can hide a gain of that size."""

ANCHORS_LOST = 0.4
"""Share of the anchors from which a challenger counts as worse on what worked."""

SWAPPED = 0.2
"""Share of anchors lost among what a challenger gained or lost from which it counts as trading answers for others."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A challenger beside the champion on the same conversations.

    Attributes:
        deltas: challenger minus champion score, one for each conversation.
        gained: questions that only the challenger passes.
        lost: anchors that the challenger does not pass.
        anchors: questions that the champion passes, and the baseline too: what works for every version so far.
        unscored: why a side could not be scored, so that there is nothing else to compare; None if both could.
        margin: how much lower the challenger's score may be, where it is to save tokens; 0 where it is to be better.
        doubt: chance that it gains nothing, by what it gained on recorded inputs too; None where none were asked.
    """

    deltas: tuple[float, ...] = ()
    gained: int = 0
    lost: int = 0
    anchors: int = 0
    unscored: str | None = None
    margin: float = 0.0
    doubt: float | None = None

    @property
    def ahead(self) -> float:
        """How far the mean difference is above what is allowed."""
        return round(self.delta + self.margin, 9)

    @property
    def delta(self) -> float:
        """The mean difference."""
        # Shares that cancel out must sum to exactly zero.
        return round(sum(self.deltas) / len(self.deltas), 9) if self.deltas else 0.0


def compare(
    champion: Sequence[Outcome], challenger: Sequence[Outcome], baseline: Sequence[Outcome] | None = None
) -> Comparison:
    """The two sides on the same conversations; without `baseline`, all questions that the champion passes are anchors.

    Raises:
        ValueError: the sides do not hold the same conversations.
    """
    old, new = _by_conversation(champion), _by_conversation(challenger)
    base = _by_conversation(baseline) if baseline is not None else old
    if old.keys() != new.keys() or base.keys() != old.keys():
        raise ValueError("champion, challenger and baseline must be evaluated on the same conversations")
    for side, outcomes in (("champion", old), ("challenger", new)):
        for name, outcome in outcomes.items():
            if outcome.tainted is not None:
                return Comparison(unscored=f"{side} could not be scored on {name}: {outcome.tainted}")
    after, before = _passes(new), _passes(old)
    anchors = before & _passes(base)
    deltas = tuple(new[name].score - old[name].score for name in old)
    return Comparison(deltas, len(after - before), len(anchors - after), len(anchors))


def decide(comparison: Comparison, level: float = GATE_LEVEL) -> GateDecision:
    """The decision at a one-sided level.

    Accepted when every conversation could be scored on both sides, the mean difference is positive, the one-sided exact
    sign-flip p over conversations is at most `level`, and the anchors hold (`anchors_hold`). With a margin the
    difference need only be above minus the margin, and p is of that (a test of non-inferiority). Where recorded inputs
    leave little doubt too (`DOUBT`), p may be up to `GATE_LEVEL`; at level 0 nothing is accepted.
    """
    if comparison.unscored is not None:
        return GateDecision(GateOutcome.INCOMPARABLE, comparison.unscored)
    delta, margin = comparison.delta, comparison.margin
    p_value = sign_flip_p([difference + margin for difference in comparison.deltas], "greater")
    if level and comparison.doubt is not None and comparison.doubt <= DOUBT:
        level = GATE_LEVEL
    outcome = GateOutcome.ACCEPTED
    if comparison.ahead <= 0:
        outcome = GateOutcome.LOSES_SCORE if margin else GateOutcome.NOT_BETTER
    elif p_value > level:
        outcome = GateOutcome.WITHIN_NOISE
    elif not anchors_hold(comparison.lost, comparison.anchors, comparison.gained):
        outcome = GateOutcome.LOSES_ANCHORS
    figures = (
        f"{delta:+.3f} over {len(comparison.deltas)} conversations, one-sided p {p_text(p_value)}, "
        f"{comparison.gained} question{'s' * (comparison.gained != 1)} gained, "
        f"{comparison.lost} of {comparison.anchors} anchors lost"
    )
    if comparison.doubt is not None:
        figures += f"; with recorded inputs, chance of no gain {comparison.doubt:.2f}"
    return GateDecision(outcome, figures, delta, p_value, comparison.lost)


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


@dataclass(frozen=True, slots=True)
class Look:
    """One look of the gate at a challenger.

    Attributes:
        conversations: after how many of them.
        level: one-sided level at which it is accepted here; at 0 this look only rejects.
        slack: how far behind the challenger may be to go on; without any it must be ahead.
    """

    conversations: int
    level: float = 0.0
    slack: float = 0.0

    def trails(self, delta: float) -> bool:
        """Whether a challenger with this mean difference is out."""
        return delta < -self.slack if self.slack else delta <= 0


@dataclass(frozen=True, slots=True)
class LookSchedule:
    """When the gate looks at a challenger, and what it may decide then; the last look decides.

    A look before the last only saves conversations: it accepts at its own part of the level, and rejects what trails.
    """

    looks: tuple[Look, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """After how many conversations the gate looks."""
        return tuple(look.conversations for look in self.looks)

    def decision(self, comparison: Comparison) -> GateDecision | None:
        """The decision at the look that a comparison has come to; None if it takes more conversations."""
        reached = [look for look in self.looks if look.conversations <= len(comparison.deltas)]
        look = reached[-1] if reached else self.looks[0]
        decision = decide(comparison, look.level)
        if decision.accepted or comparison.unscored is not None or look is self.looks[-1]:
            return decision
        early = GateOutcome.LOSES_SCORE if comparison.margin else GateOutcome.NOT_AHEAD
        return replace(decision, outcome=early) if look.trails(comparison.ahead) else None

    def first_decision(self, compared: Callable[[int], Comparison]) -> GateDecision:
        """Look until there is a decision; `compared` compares after a number of conversations."""
        return next(decision for count in self.counts if (decision := self.decision(compared(count))) is not None)


def look_schedule(total: int) -> LookSchedule:
    """The looks at a challenger over `total` conversations.

    The first only rejects, if there is one before `LOOKS`. Before half of the conversations what is more than `SLACK`
    behind is out, and from then on what is not ahead.
    """
    if total < FEWEST_LOOKED_AT:
        return LookSchedule((Look(total, GATE_LEVEL),))
    counts = sorted({max(FIRST_LOOK, math.ceil(part * total)) for part in LOOKS})
    first = (Look(FIRST_LOOK, slack=SLACK),) if counts[0] > FIRST_LOOK else ()
    return LookSchedule((*first, *(Look(count, LOOK_LEVEL, SLACK if 2 * count < total else 0.0) for count in counts)))


def half_then_all(total: int) -> LookSchedule:
    """The looks at one finalist alone: at half it can only be rejected, so the last look has the whole level."""
    first = (Look(total // 2),) if total > 1 else ()
    return LookSchedule((*first, Look(total, GATE_LEVEL)))


def _by_conversation(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    return {outcome.conversation.id: outcome for outcome in outcomes}


def _passes(outcomes: dict[str, Outcome]) -> set[tuple[str, str]]:
    sound = [outcome for outcome in outcomes.values() if outcome.tainted is None]
    return {(case.conversation, case.question.id) for outcome in sound for case in outcome.cases if case.passed}
