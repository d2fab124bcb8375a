"""What an annotation claims: that certain turns answer a question about somebody in a certain way."""

from __future__ import annotations

import re
from dataclasses import dataclass

from attribution.gold_answers.transcript import Transcript
from attribution.text.content import content_of, time_words
from attribution.text.languages.language_data import compiled_of_language
from attribution.text.phrases import clauses_of, says_unknown
from attribution.text.question_kinds import is_inferred
from tracing.systems.conversations import Question, Turn

SUPPORTING = 0.6
"""Least share of an answer's words with which turns say it."""

ON_TOPIC = 0.34
"""Least share of a question's words with which turns are about its matter."""

NEARBY = 2
"""How far from a cited turn the rest of what it is about may be said, in turns."""

_SHORT_NAME = 3
_CAPITALISED = re.compile(r"\b[^\W\d_]\w*")
_PATTERNS = compiled_of_language("common", "gold_answers")


@dataclass(frozen=True, slots=True)
class AnnotatedClaim:
    """The parts of an annotated question: the one speaker that it names, and its content words without names and times.

    The cited turns, and these with the turns nearby, are given by their places. What `concludes` nobody has to say.
    """

    question: Question
    person: str | None
    topic: frozenset[str]
    cited: frozenset[int]
    around: frozenset[int]
    concludes: bool

    def words_of(self, answer: str, talk: Transcript) -> frozenset[str]:
        """The content words that an answer adds to the question."""
        return content_of(answer) - content_of(self.question.question) - talk.names


def claim_of(question: Question, talk: Transcript) -> AnnotatedClaim:
    """The parts of a question that is asked about this conversation."""
    text = question.question
    named = [name for name in talk.conversation.speakers if names(text, name)]
    topic = content_of(text) - talk.names - time_words(text)
    concludes = (
        is_inferred(question)
        or _PATTERNS["concludes"].search(text) is not None
        or any(_PATTERNS["presumes"].search(answer) for answer in question.answers)
    )
    return AnnotatedClaim(
        question,
        named[0] if len(named) == 1 else None,
        topic,
        talk.near(question.evidence, 0),
        talk.near(question.evidence, NEARBY),
        concludes,
    )


def is_supported(claim: AnnotatedClaim, reply: str, talk: Transcript, places: frozenset[int]) -> bool:
    """Whether a reply says something that turns at these places say."""
    words = claim.words_of(reply, talk)
    return bool(words) and not says_unknown(reply) and talk.share(words, places) >= SUPPORTING


def clauses_with(turn: Turn, words: frozenset[str], talk: Transcript) -> list[str]:
    """The clauses of a turn that say the most of these words; none if it says none."""
    at = talk.place[turn.id]
    said_words = [word for word in words if at in talk.where(word)]
    counted = [(sum(talk.in_text(word, clause) for word in said_words), clause) for clause in clauses_of(turn.text)]
    most = max((count for count, _ in counted), default=0)
    return [clause for count, clause in counted if count == most and most > 0]


def addresses(text: str, person: str) -> bool:
    """Whether a text speaks to somebody, or names the person."""
    return _PATTERNS["addresses"].search(text) is not None or names(text, person)


def names(text: str, name: str) -> bool:
    """Whether a text names a person, in full, by a part of the name or by a short form of it (Mel for Melanie)."""
    parts = {part.casefold() for part in re.findall(r"\w+", name) if len(part) >= 2}
    for capitalised in _CAPITALISED.findall(text):
        word = capitalised.casefold()
        if word in parts or (
            capitalised[0].isupper() and len(word) >= _SHORT_NAME and any(part.startswith(word) for part in parts)
        ):
            return True
    return False
