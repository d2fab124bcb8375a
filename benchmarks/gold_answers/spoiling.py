"""Gold answers spoiled in seven ways, each by code from the annotation alone.

Nothing here asks attribution: a benchmark may not choose its cases by the method that it measures. Words are compared
as plain runs of letters and digits.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from benchmarks.gold_answers.shifted_dates import is_time, moved_time, shifted
from tracing.systems.conversations import Conversation, Question

Spoiling = Literal["unsaid", "speaker", "date", "event", "premise", "who", "day"]

NOT_MENTIONED = "not mentioned"

_WORD = re.compile(r"\w+")
_LONG, _TOPIC = 4, 5
_MOST_WORDS, _ITEM_WORDS = 12, 4
_NEAREST = 5
_ALIKE = 0.6
_GUESSES = re.compile(r"\b(?:would|might|could|likely|probably|potentially)\b", re.IGNORECASE)
_UNSURE = re.compile(r"\b(?:yes|no|likely|unlikely|probably|maybe)\b", re.IGNORECASE)
_BETWEEN = re.compile(r",\s*(?:and\s+)?|\s+and\s+")


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A question whose gold answer is wrong.

    Attributes:
        question: with the wrong annotation.
        truth: what the conversation supports.
    """

    question: Question
    truth: str


@dataclass(frozen=True, slots=True)
class SpoilableTalk:
    """A conversation with those from which foreign words are taken.

    Attributes:
        conversation: whose questions are spoiled.
        donors: questions of other conversations of the same split.
    """

    conversation: Conversation
    donors: Sequence[Question]

    def text(self) -> str:
        """All that is said, in lower case."""
        return "\n".join(turn.spoken for turn in self.conversation.turns()).casefold()

    def said_by(self, speaker: str) -> str:
        """All that one person says, in lower case."""
        return "\n".join(turn.text for turn in self.conversation.turns() if turn.speaker == speaker).casefold()

    def speakers_of(self, question: Question) -> set[str]:
        """Who says the evidence."""
        return {turn.speaker for turn in self.conversation.turns() if turn.id in question.evidence}

    def named(self, text: str) -> list[str]:
        """The speakers that a text names."""
        return [name for name in self.conversation.speakers if re.search(rf"\b{re.escape(name)}\b", text)]


def can_be_spoiled(question: Question) -> bool:
    """Whether a question is answered by what somebody says, in few words."""
    answer = question.answers[0]
    return (
        bool(question.evidence)
        and not question.unanswerable
        and not _GUESSES.search(question.question)
        and not _UNSURE.match(answer)
        and len(answer.split()) <= _MOST_WORDS
    )


def spoiled(kind: Spoiling, question: Question, source: SpoilableTalk, chance: random.Random) -> Spoiled | None:
    """The question with its annotation spoiled in this way; None where that cannot be done to it."""
    return _WAYS[kind](question, source, chance)


def _unsaid(question: Question, source: SpoilableTalk, chance: random.Random) -> Spoiled | None:
    """An answer, or an item of a list, that nobody in the conversation says."""
    if not can_be_spoiled(question) or is_time(question.answers[0]):
        return None
    said = source.text()
    answer = question.answers[0]
    items = [item for item in _BETWEEN.split(answer) if item.strip()]
    listed = len(items) > 1 and all(len(item.split()) <= _ITEM_WORDS for item in items)
    most = _ITEM_WORDS if listed else len(answer.split()) + 2
    foreign = [
        other.answers[0]
        for other in source.donors
        if can_be_spoiled(other)
        and not is_time(other.answers[0])
        and (listed or _asks(other) == _asks(question))
        and len(other.answers[0].split()) <= most
        and "," not in other.answers[0]
        and (long := _long(other.answers[0]))
        and not any(word in said for word in long)
    ]
    if not foreign:
        return None
    invented = chance.choice(foreign)
    if listed:
        at = chance.randrange(len(items) + 1)
        items[at : at + 1] = [invented]
        invented = ", ".join(items)
    return Spoiled(_annotated(question, invented), answer)


def _speaker(question: Question, source: SpoilableTalk, chance: random.Random) -> Spoiled | None:
    """What the other speaker says: a near miss told by another, or the question asked about the other one."""
    named = source.named(question.question)
    if len(named) != 1 or len(source.conversation.speakers) != 2:
        return None
    other = next(name for name in source.conversation.speakers if name != named[0])
    miss = question.near_miss
    if miss is not None:
        turn = next(turn for turn in source.conversation.turns() if turn.id == miss.turn)
        if turn.speaker != other:
            return None
        truth = NOT_MENTIONED if question.unanswerable else question.answers[0]
        return Spoiled(_annotated(question, miss.value, (miss.turn,)), truth)
    if not can_be_spoiled(question) or source.speakers_of(question) != {named[0]}:
        return None
    long = _long(question.answers[0])
    if not long or any(word in source.said_by(other) for word in long):
        return None
    asked = re.sub(rf"\b{re.escape(named[0])}\b", other, question.question)
    return Spoiled(question.model_copy(update={"question": asked}), NOT_MENTIONED)


def _date(question: Question, source: SpoilableTalk, chance: random.Random) -> Spoiled | None:
    """Another date, month, year or duration than the evidence gives."""
    moved = shifted(question.answers[0], chance) if can_be_spoiled(question) else None
    return Spoiled(_annotated(question, moved), question.answers[0]) if moved is not None else None


def _event(question: Question, source: SpoilableTalk, chance: random.Random) -> Spoiled | None:
    """The answer and evidence of a similar question, about something else in another session."""
    if not can_be_spoiled(question) or len(_sessions(question)) != 1:
        return None
    own, answer = set(_words(question.question)), _long(question.answers[0])

    def alike(other: Question) -> float:
        words = set(_words(other.question))
        return len(own & words) / len(own | words)

    others = [
        other
        for other in source.conversation.questions
        if can_be_spoiled(other)
        and _asks(other) == _asks(question)
        and source.named(other.question) == source.named(question.question)
        and len(_sessions(other)) == 1
        and _sessions(other) != _sessions(question)
        and answer.isdisjoint(_long(other.answers[0]))
        and alike(other) <= _ALIKE
    ]
    if not others:
        return None
    near = sorted(others, key=lambda other: (-alike(other), other.id))[:_NEAREST]
    other = chance.choice(near)
    return Spoiled(_annotated(question, other.answers[0], other.evidence), question.answers[0])


def _premise(question: Question, source: SpoilableTalk, chance: random.Random) -> Spoiled | None:
    """A question about what was not: as annotated by an adversary, or with a topic that nobody mentions."""
    named = source.named(question.question)
    miss = question.near_miss
    if question.unanswerable:
        if miss is None or miss.turn not in question.evidence or source.speakers_of(question) != set(named):
            return None
        return Spoiled(_annotated(question, miss.value), NOT_MENTIONED)
    if not can_be_spoiled(question):
        return None
    evidence = "\n".join(turn.text for turn in source.conversation.turns() if turn.id in question.evidence).casefold()
    mentioned = {name.casefold() for name in source.conversation.speakers}
    topics = [word for word in _topics(question) if word in evidence and word not in mentioned]
    said = source.text()
    foreign = [word for other in source.donors if can_be_spoiled(other) for word in _topics(other) if word not in said]
    if not topics or not foreign:
        return None
    topic, invented = topics[-1], chance.choice(foreign)
    asked = re.sub(rf"\b{re.escape(topic)}\b", invented, question.question, flags=re.IGNORECASE)
    if asked == question.question:
        return None
    return Spoiled(question.model_copy(update={"question": asked}), NOT_MENTIONED)


def _who(question: Question, source: SpoilableTalk, chance: random.Random) -> Spoiled | None:
    """The question asked about the other speaker, where the truth is who it was."""
    swapped = _speaker(question, source, chance) if question.near_miss is None else None
    return replace(swapped, truth=f"It was {source.named(question.question)[0]}.") if swapped is not None else None


def _day(question: Question, source: SpoilableTalk, chance: random.Random) -> Spoiled | None:
    """The question asked of another time than it names, where the truth is when it was."""
    moved = shifted(question.question, chance) if can_be_spoiled(question) else None
    if moved is None or is_time(question.answers[0]):
        return None
    time = moved_time(question.question)
    return Spoiled(question.model_copy(update={"question": moved}), f"It was {time}.") if time is not None else None


_WAYS: Mapping[Spoiling, Callable[[Question, SpoilableTalk, random.Random], Spoiled | None]] = {
    "unsaid": _unsaid,
    "speaker": _speaker,
    "date": _date,
    "event": _event,
    "premise": _premise,
    "who": _who,
    "day": _day,
}
SPOILINGS: tuple[Spoiling, ...] = tuple(_WAYS)


def _annotated(question: Question, answer: str, evidence: tuple[str, ...] | None = None) -> Question:
    changed = {
        "answers": (answer,),
        "unanswerable": False,
        "near_miss": None,
        "fact": None,
        "evidence": question.evidence if evidence is None else evidence,
    }
    return question.model_copy(update=changed)


def _asks(question: Question) -> str:
    return _words(question.question)[0] if _words(question.question) else ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _long(text: str) -> set[str]:
    """The words that carry an answer: of four letters or more, and numbers."""
    return {word for word in _words(text) if len(word) >= _LONG or word.isdigit()}


def _topics(question: Question) -> list[str]:
    """The longer words of a question after its first two, in lower case where it writes them so."""
    return [word.casefold() for word in _WORD.findall(question.question)[2:] if len(word) >= _TOPIC and word.islower()]


def _sessions(question: Question) -> set[str]:
    return {turn.partition(":")[0] for turn in question.evidence}
