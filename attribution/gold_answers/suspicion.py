"""A suspicion: what in the conversation speaks against a gold answer, and how likely that means that it is wrong.

How likely comes from how often such evidence was found in spoiled and in sound answers: counted on the development
conversations of `python -m benchmarks gold-answers` (conv-41, conv-43 and conv-47 of LoCoMo, and half of the bundled
sample), with eight seeds. Nine unspoiled answers of LoCoMo that were accused and on reading are wrong were left out.
All are English conversations of two people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tracing.package_data import packaged_tables

Doubt = Literal["unsaid", "speaker", "date", "event", "premise"]
"""What can be wrong with an annotation: nobody says the answer; another speaker says it; the dated evidence gives
another time; the cited turn is about another event; the question's premise is false."""

IN_FAILURES = 0.15
"""Share of wrong gold answers among answers that were judged wrong: 13 of 81 in an outside audit of one Mem0 run."""

IN_DATA = 0.06
"""The same among all questions of a data set."""

NOT_CALIBRATED = " (how sure that is was not calibrated on such cases)"
"""Ends the reason of a verdict whose confidence was not learnt from cases like it."""

_SPOILED, _SOUND = 1165, 4829
_UNSEEN = 4
"""Added to what was counted in sound ones, where hardly any was: half a case of each 600 different ones."""

_FEWEST = 10
_COUNTED: Mapping[tuple[Doubt, bool, bool], tuple[int, int]] = {
    (doubt, strong, supported): (spoiled, sound)
    for doubt, strong, supported, spoiled, sound in packaged_tables("attribution", "fitted.toml")["suspicion"][
        "counted"
    ]
}
"""By kind, strength and whether the reply is supported: how many spoiled and how many sound gold answers have it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Evidence of one kind against a gold answer, in one plain sentence, from turns of which those cited come first.

    A strong one counts by itself; a weak one needs a reply that the conversation supports.
    """

    doubt: Doubt
    strong: bool
    supported: bool
    reason: str
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A gold answer that is probably wrong, how likely, and why, in one plain sentence.

    `supported` says whether the reply, where there is one, is what the conversation supports.
    """

    question: str
    doubt: Doubt
    confidence: float
    reason: str
    turns: tuple[str, ...]
    supported: bool = False

    @property
    def goes_by_words(self) -> bool:
        """Whether it says no more than that nobody uses the answer's words: the content may be told in others."""
        return self.doubt == "unsaid" and not self.supported


def confidence_of(finding: Finding, *, prior: float) -> float:
    """The probability that the annotation is wrong, by Bayes' rule; `prior` is that of all that are looked at."""
    spoiled, sound = _COUNTED[_class(finding)]
    right = prior * spoiled / _SPOILED
    wrong = (1 - prior) * (sound + _UNSEEN) / _SOUND
    return round(right / (right + wrong), 3)


def is_calibrated(finding: Finding) -> bool:
    """Whether enough evidence like this was counted for its confidence to mean much."""
    return sum(_COUNTED[_class(finding)]) >= _FEWEST


def _class(finding: Finding) -> tuple[Doubt, bool, bool]:
    return finding.doubt, finding.strong, finding.supported
