"""What became of a rewrite: an outcome, by which the code decides, and the sentence that people and files have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GateOutcome(StrEnum):
    """What the gate, or whoever decides in its place, decided; as a text, its words in the sentence."""

    ACCEPTED = "accepted"
    UNCOMPARED = "accepted without a comparison"
    NOT_BETTER = "rejected, not better"
    WITHIN_NOISE = "rejected, within noise"
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
