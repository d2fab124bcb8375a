"""Where to look: the turns that most likely hold what a question needs, for cases without annotated evidence.

Turns are ranked by their words (BM25, Robertson and Zaragoza 2009). What is said by the one person that the question
names counts more, and so does what is said at the time that it names or soon after, and what stands near a likely turn:
a dialogue answers in the turn after the question.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Literal

from attribution.cases import Case
from attribution.text.content import words_of
from attribution.text.dates import days_of, spans_of
from attribution.text.languages.reading_language import in_its_language, language_of, reading
from attribution.text.phrases import without_courtesies
from attribution.text.segments import CJK_CHARACTER, UNSPACED
from tracing.systems.conversations import Conversation

Query = Literal["question", "prediction", "gold"]
"""What to search with: the question alone, with the wrong reply, or with the accepted answer."""

STARTING_POINTS = 8
_K1, _B = 0.9, 0.4
"""BM25's saturation and length normalisation, as Anserini sets them for short passages."""
_NEARBY = {1: 0.4, 2: 0.2}
"""Part of a turn's score that each turn so far from it in the same session gets."""
_SPOKEN_BY = 1.6
"""Factor of the turns of the person asked about."""
_AT_THE_TIME, _SOON_DAYS = 2.0, 7
"""Factor of the turns at the time asked about, and how many days later they may tell of it. These five were chosen on
LoCoMo's conversations 41 to 43, and checked on 44, 47 and 48."""


class EvidenceIndex:
    """The turns of one conversation, indexed once, to be searched for many cases."""

    def __init__(self, conversation: Conversation) -> None:
        self._texts = {turn.id: turn.spoken for turn in conversation.turns()}
        self._speakers = {turn.id: turn.speaker for turn in conversation.turns()}
        self._nearby: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for session in conversation.sessions:
            for distance, part in _NEARBY.items():
                for earlier, later in zip(session.turns, session.turns[distance:], strict=False):
                    self._nearby[earlier.id].append((later.id, part))
                    self._nearby[later.id].append((earlier.id, part))
        self._days = {turn: day.toordinal() for turn, day in days_of(conversation).items() if day is not None}
        self.language = language_of(self._texts.values())
        """The conversation's language, in which texts are read."""
        self._postings: Mapping[str, list[tuple[str, int]]]
        postings: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._lengths: dict[str, int] = {}
        for turn, text in self._texts.items():
            with reading(self.language):
                words = words_of(text)
            self._lengths[turn] = len(words)
            for word, count in Counter(words).items():
                postings[word].append((turn, count))
        self._postings = postings
        self._mean_length = sum(self._lengths.values()) / max(1, len(self._lengths))

    def search(self, case: Case, top: int = STARTING_POINTS, *, query: Query = "question") -> list[str]:
        """Ids of the `top` likeliest evidence turns, the likeliest first."""
        return self._in_context(self.scores(query_text(case, query)), case.question.question)[:top]

    def _asked_about(self, question: str) -> str | None:
        """The one speaker whom a question names."""
        named = [name for name in filter(None, set(self._speakers.values())) if _names(question, name)]
        return named[0] if len(named) == 1 else None

    def _told_then(self, question: str) -> set[str]:
        """The turns of the time that a question names."""
        spans = spans_of(question)
        return {
            turn for turn, day in self._days.items() if any(first <= day <= last + _SOON_DAYS for first, last in spans)
        }

    @in_its_language
    def scores(self, text: str) -> Mapping[str, float]:
        """BM25 of the turns that have any word of the text."""
        scores: dict[str, float] = defaultdict(float)
        for word in dict.fromkeys(words_of(without_courtesies(text))):
            postings = self._postings.get(word, ())
            rarity = math.log(1 + (len(self._texts) - len(postings) + 0.5) / (len(postings) + 0.5))
            for turn, count in postings:
                length = 1 - _B + _B * self._lengths[turn] / self._mean_length
                scores[turn] += rarity * count * (_K1 + 1) / (count + _K1 * length)
        return scores

    @in_its_language
    def _in_context(self, scores: Mapping[str, float], question: str) -> list[str]:
        """The turns by their scores and those of their neighbours, by who speaks, and by when."""
        speaker, then = self._asked_about(question), self._told_then(question)
        likely = {
            turn: (score + sum(part * scores.get(other, 0.0) for other, part in self._nearby[turn]))
            * (_SPOKEN_BY if speaker is not None and self._speakers[turn] == speaker else 1)
            * (_AT_THE_TIME if turn in then else 1)
            for turn, score in scores.items()
        }
        return sorted(likely, key=lambda turn: -likely[turn])


def query_text(case: Case, query: Query) -> str:
    """The text to search with; without a known answer, the reply replaces it."""
    question_text = case.question.question
    if query == "question":
        return question_text
    gold = " ".join(case.question.answers) if query == "gold" else ""
    return f"{question_text} {gold.strip() or case.reply}"


def _names(question: str, name: str) -> bool:
    """Whether a name stands in a question, as a word where its script has a space between words."""
    if CJK_CHARACTER.search(name) or UNSPACED.search(name):
        return name in question
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", question) is not None
