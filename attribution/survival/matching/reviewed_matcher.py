"""Words with a second opinion: a matcher that grades by words, and lets something that reads meaning correct them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from attribution.survival.matching.matcher import Claim, Grade, Passage
from attribution.survival.matching.word_matcher import WordMatcher
from attribution.survival.needs import Need
from attribution.text.languages.reading_language import in_its_language
from tracing.systems.conversations import Question

CARRIES = 0.5
"""Least opinion with which a passage carries a claim."""


class Opinions(Protocol):
    """What reads meaning; set up for one conversation, and called from several threads."""

    def worth(self, claim: Claim, texts: Sequence[str], /) -> Sequence[bool]:
        """Which of many texts may carry the claim although they have none of its words."""

    def opinions(self, claim: Claim, passages: Sequence[Passage], grades: Sequence[Grade], /) -> Sequence[float | None]:
        """How likely each passage carries the claim, 0 to 1; None where the words, which gave `grades`, decide."""

    def right(self, question: Question, reply: str, /) -> bool | None:
        """As `JudgesReplies.right`."""


class ReviewedMatcher:
    """A `Matcher` by words and opinions; it `JudgesReplies` as they do."""

    def __init__(self, words: WordMatcher, opinions: Opinions) -> None:
        self._words, self._opinions = words, opinions
        self.language = words.language
        """The conversation's language, in which texts are read."""

    @in_its_language
    def may_carry(self, claim: Claim, texts: Sequence[str]) -> Sequence[bool]:
        """Those with any word of the need, and those that may carry it in others."""
        by_words = self._words.may_carry(claim, texts)
        others = [text for text, may in zip(texts, by_words, strict=True) if not may]
        worth = iter(self._opinions.worth(claim, others) if others else ())
        return [may or next(worth) for may in by_words]

    @in_its_language
    def grades(self, claim: Claim, passages: Sequence[Passage]) -> Sequence[Grade]:
        """How well each passage carries the claim: by words, corrected where there is an opinion."""
        grades = self._words.grades(claim, passages)
        # A turn that is held as it was said is compared with what was said, which needs no opinion.
        reworded = [at for at, passage in enumerate(passages) if passage.wording != "verbatim" and passage.text.strip()]
        opinions = self._opinions.opinions(claim, [passages[at] for at in reworded], [grades[at] for at in reworded])
        corrected = list(grades)
        for at, opinion in zip(reworded, opinions, strict=True):
            if opinion is not None:
                corrected[at] = _corrected(grades[at], opinion, claim.need)
        return corrected

    @in_its_language
    def right(self, question: Question, reply: str) -> bool | None:
        """Whether a reply is right in other words."""
        return self._opinions.right(question, reply)


def _corrected(grade: Grade, opinion: float, need: Need) -> Grade:
    """The grade whose coverage is on the same side of the need's threshold as the opinion is of one half."""
    if opinion < CARRIES:
        coverage = min(grade.coverage, need.threshold * opinion / CARRIES)
        return replace(grade, coverage=coverage, carries=False, words=frozenset())
    coverage = need.threshold + (1 - need.threshold) * (opinion - CARRIES) / (1 - CARRIES)
    words = grade.words.union(*need.forms[:1])
    return replace(
        grade,
        coverage=max(grade.coverage, coverage),
        person="right",
        # A text that answers the question is about its subject, in whatever words.
        about=max(grade.about, opinion),
        relevant=True,
        carries=True,
        words=words,
    )
