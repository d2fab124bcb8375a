"""The matcher that asks a chat model whether a text carries a claim, and believes it as far as it can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attribution.survival.matching.matcher import Claim, Grade, Passage
from attribution.survival.matching.model_check import CheckedModel, checked_model_of
from attribution.survival.matching.reviewed_matcher import ReviewedMatcher
from attribution.survival.matching.word_matcher import WordMatcher
from attribution.text.content import content_of
from tracing.systems.conversations import Question

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess
    from tracing.systems.conversations import Conversation, Turn

MOST_ASKED = 4
"""Texts of one stage that the model is asked about, the likeliest first; the others carry nothing."""

_SURE = 0.95


class ModelOpinions:
    """Opinions of a chat model.

    Args:
        conversation: whose turns say what is to be told.
        language: in which it is read.
        model: what is asked.
    """

    def __init__(self, conversation: Conversation, language: str, model: CheckedModel) -> None:
        self._turns = {turn.id: turn for turn in conversation.turns()}
        self._language, self._model = language, model

    def worth(self, claim: Claim, texts: Sequence[str]) -> Sequence[bool]:
        """Those that share most words with what the need's turns say."""
        evidence_words = content_of("\n".join(turn.text for turn in self._evidence_of(claim)))
        shared = [len(evidence_words & content_of(text)) for text in texts]
        least = sorted(shared, reverse=True)[:MOST_ASKED][-1] if shared else 0
        return [count >= max(1, least) for count in shared]

    def opinions(self, claim: Claim, passages: Sequence[Passage], grades: Sequence[Grade]) -> Sequence[float | None]:
        """What the model says of the likeliest texts; the others, if words would match them, are no match.

        Where it is not believed that a text does not carry a claim, words decide on the others too.
        """
        near = [
            grade.carries + grade.coverage + grade.about + passage.traced
            for passage, grade in zip(passages, grades, strict=True)
        ]
        likeliest = sorted(range(len(passages)), key=lambda at: (-near[at], at))[:MOST_ASKED]
        denies = False in self._model.counting(self._language)
        return [
            self._tells(claim, passage) if at in likeliest else (0.0 if denies and grades[at].carries else None)
            for at, passage in enumerate(passages)
        ]

    def right(self, question: Question, reply: str) -> bool | None:
        """The model's verdict on a reply; None where it abstains, or is not believed."""
        return self._model.right(question, reply)

    def _tells(self, claim: Claim, passage: Passage) -> float | None:
        content = claim.need.label
        if claim.need.basis == "implied":
            content = " ".join(turn.spoken for turn in self._evidence_of(claim))
        tells = self._model.tells(claim.question.question, content, passage.text, self._language)
        return None if tells is None else _SURE if tells else 1 - _SURE

    def _evidence_of(self, claim: Claim) -> list[Turn]:
        return [self._turns[turn] for turn in claim.need.turns if turn in self._turns]


def by_asking(conversation: Conversation, access: ModelAccess) -> ReviewedMatcher:
    """The matcher that asks the judge's model of `access`."""
    words = WordMatcher(conversation)
    return ReviewedMatcher(words, ModelOpinions(conversation, words.language, checked_model_of(access)))
