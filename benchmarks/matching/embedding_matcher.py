"""The matcher by meaning: an embedding model where words find nothing, and roles and opposites where they find it all.

Cosines alone do not tell: those of unrelated texts are high, and a contradiction is as near as a paraphrase. So they
are compared with those of other turns of the conversation, in two ways: how near a text is to question and answer, and
how much nearer the answer brings it than the question alone does. What a text says of the contrary, of another
person's relation, of a plan, or with two people's parts exchanged, is no match however near it is.

The limits were chosen on the development pairs of `python -m benchmarks matcher` and on turns of one LoCoMo
conversation. It is measured here, and not one of memtune's: survival errs more with it than with words alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from attribution.constants import ABOUT
from attribution.judging.normal_forms import items_of, same_value
from attribution.survival.matching.matcher import Claim, Grade, Passage
from attribution.survival.matching.reviewed_matcher import ReviewedMatcher
from attribution.survival.matching.word_matcher import WordMatcher
from attribution.text.content import content_of, is_date
from attribution.text.languages.reading_language import is_read_in_full
from attribution.text.phrases import says_unknown
from attribution.text.stems import is_number
from benchmarks.matching.contradictions import contrary, of_another, swapped, unreal

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess
    from tracing.llm.models import EmbeddingModel
    from tracing.systems.conversations import Conversation, Question

_BACKGROUND = 40
_NEAR, _NEARER = 2.0, 0.5
_NEAR_UNTRACED, _NEARER_UNTRACED = 3.0, 1.5
_SAME_REPLY = 0.976
_ON_SUBJECT = 0.6
_VETOED, _SAME, _LIKE = 0.1, 0.9, 0.6

Vector = Sequence[float]


class Meaning:
    """Opinions by an embedding model, whose calls are made when they are needed, and cached."""

    def __init__(self, conversation: Conversation, model: EmbeddingModel) -> None:
        self._conversation, self._model = conversation, model
        self._is_read = is_read_in_full(turn.text for turn in conversation.turns())
        self._vectors: dict[tuple[str, bool], Vector] = {}
        self._scales: dict[str, Sequence[tuple[float, float]]] = {}

    def worth(self, claim: Claim, texts: Sequence[str]) -> Sequence[bool]:
        """None: what is neither traced nor shares a word is hardly ever found by its meaning."""
        return [False] * len(texts)

    def opinions(self, claim: Claim, passages: Sequence[Passage], grades: Sequence[Grade]) -> Sequence[float | None]:
        """Low for what contradicts the claim, high for what says it in other words; none where words suffice."""
        return [self._opinion(claim, passage, grade) for passage, grade in zip(passages, grades, strict=True)]

    def right(self, question: Question, reply: str) -> bool | None:
        """Whether a reply is so near to an answer in meaning that it says the same; None if it says nothing."""
        if says_unknown(reply) or not reply.strip():
            return None
        if not self._is_read or not all(is_read_in_full([text]) for text in (*question.answers, reply)):
            # How near two replies are was measured in the languages that are read alone.
            return None
        question_text = question.question
        return any(
            contrary(f"{question_text} {answer}", f"{question_text} {reply}") is None
            and not swapped(question_text, answer, reply)
            and self._cosine(f"{question_text} {answer}", f"{question_text} {reply}") >= _SAME_REPLY
            for answer in question.answers
            if answer.strip() and not _is_value(answer) and not _is_value(reply)
        )

    def _opinion(self, claim: Claim, passage: Passage, grade: Grade) -> float | None:
        need = claim.need
        if passage.wording == "reply" or need.basis == "implied":
            return None
        opinion = None if grade.carries else self._finds(claim, passage, grade)
        carries = grade.carries or opinion is not None
        return _VETOED if carries and not need.denied and self._contradicts(claim, passage.text, grade) else opinion

    def _finds(self, claim: Claim, passage: Passage, grade: Grade) -> float | None:
        """A high opinion of a passage that says in other words what it is to carry; else none."""
        need, question_text = claim.need, claim.question.question
        if need.times or grade.person == "other":
            return None
        equal_value = same_value(need.label, passage.text, need.day)
        if equal_value is not None:
            return _SAME if equal_value and (passage.traced or grade.about >= _ON_SUBJECT) else None
        if not passage.traced and grade.about < ABOUT:
            # Hardly ever a match, and there are too many of them to embed.
            return None
        statement = f"{question_text} {need.label}"
        cosines = self._cosines(question_text, statement, passage.text)
        scale = self._scale(question_text, statement)
        near, nearer = ((cosine - mean) / deviation for cosine, (mean, deviation) in zip(cosines, scale, strict=True))
        thresholds = (_NEAR, _NEARER) if passage.traced else (_NEAR_UNTRACED, _NEARER_UNTRACED)
        return _LIKE if near >= thresholds[0] and nearer >= thresholds[1] else None

    def _contradicts(self, claim: Claim, text: str, grade: Grade) -> bool:
        question_text, label = claim.question.question, claim.need.label
        statement = f"{question_text} {label}"
        how = contrary(statement, text)
        if (
            how == "opposed"
            or swapped(question_text, label, text)
            or unreal(statement, text)
            or of_another(statement, text)
        ):
            return True
        about = len(content_of(question_text) & content_of(text)) / max(1, len(content_of(question_text)))
        return how == "denied" and (grade.coverage >= _ON_SUBJECT or about >= _ON_SUBJECT)

    def _scale(self, question: str, statement: str) -> Sequence[tuple[float, float]]:
        """Mean and standard deviation of other turns' cosines, by which a text's nearness and gain are unusual."""
        if statement not in self._scales:
            turns = [turn.spoken for turn in self._conversation.turns()]
            sample = turns[:: max(1, len(turns) // _BACKGROUND)][:_BACKGROUND]
            self._embed(sample, query=False)
            cosines = zip(*(self._cosines(question, statement, turn) for turn in sample), strict=True)
            self._scales[statement] = [(fmean(values), pstdev(values) or 1.0) for values in cosines] or [(0.0, 1.0)] * 2
        return self._scales[statement]

    def _cosines(self, question: str, statement: str, text: str) -> tuple[float, float]:
        """How near a text is to a statement, and how much nearer than to the question alone."""
        self._embed([question, statement], query=True)
        self._embed([text], query=False)
        vector = self._vectors[text, False]
        near = _dot(self._vectors[statement, True], vector)
        return near, near - _dot(self._vectors[question, True], vector)

    def _cosine(self, first: str, second: str) -> float:
        self._embed([first, second], query=False)
        return _dot(self._vectors[first, False], self._vectors[second, False])

    def _embed(self, texts: Sequence[str], *, query: bool) -> None:
        missing = list(dict.fromkeys(text for text in texts if (text, query) not in self._vectors))
        if missing:
            vectors = self._model.embed(missing, query=query)
            self._vectors.update(((text, query), vector) for text, vector in zip(missing, vectors, strict=True))


def _is_value(text: str) -> bool:
    """Whether a text is a list, or gives a number or a time: other ones are as near to it as the same ones."""
    return len(items_of(text)) > 1 or is_date(text) or any(map(is_number, content_of(text)))


def _dot(first: Vector, second: Vector) -> float:
    return float(sum(map(mul, first, second)))


def by_meaning(conversation: Conversation, access: ModelAccess) -> ReviewedMatcher:
    """The matcher by words and meaning, with the embedding model of `access`."""
    return ReviewedMatcher(WordMatcher(conversation), Meaning(conversation, access.embedding))
