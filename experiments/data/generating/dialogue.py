"""One conversation as questions are generated from it: indexed once, with its turns by id and the days they are of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from attribution.cases import Case
from attribution.evidence_index import EvidenceIndex
from attribution.gold_answers.answer_audit import Audit
from attribution.gold_answers.transcript import Transcript
from attribution.judging.words import judge
from attribution.text.content import Vocabulary
from attribution.text.dates import days_of
from attribution.text.languages.reading_language import reading
from tracing.systems.conversations import Conversation, Question

_RARE, _FEW_TURNS = 0.03, 3
"""A rare word is said in no greater part of the turns, or in no more of them."""


class Dialogue:
    """What is asked of a conversation while its questions are drafted and tested.

    Attributes:
        conversation: the same.
        turns: by id, in order.
        vocabulary: how much its words tell.
        talk: who says what in it.
        days: on which day turns were said, as far as that is known.
        language: in which it is read.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.turns = {turn.id: turn for turn in conversation.turns()}
        self.vocabulary = Vocabulary(turn.spoken for turn in self.turns.values())
        self.language = self.vocabulary.language
        self.days = days_of(conversation)
        self._times = {turn.id: session.time for session in conversation.sessions for turn in session.turns}
        self._order = {turn: place for place, turn in enumerate(self.turns)}
        self.session = {turn.id: session.id for session in conversation.sessions for turn in session.turns}
        with reading(self.language):
            self.talk = Transcript(conversation)
            self._index = EvidenceIndex(conversation)
            self.audit = Audit(conversation)

    def is_rare(self, word: str) -> bool:
        """Whether few turns say a content word, so that it tells what a turn is about, or answers a question."""
        return len(self.talk.where(word)) <= max(_FEW_TURNS, _RARE * len(self.turns))

    def found(self, question: str, top: int) -> list[str]:
        """The ids of the turns likeliest to answer a question, the likeliest first."""
        case = Case(self.conversation.id, Question(id="", question=question, answers=("",)), "", judge("", ()), None)
        return self._index.search(case, top)

    def lines(self, turns: Iterable[str], *, dated: bool = True) -> str:
        """Turns as a model reads them, in the order in which they were said, one a line."""
        return "\n".join(self._line(turn, dated=dated) for turn in self.in_order(turns))

    def _line(self, turn: str, *, dated: bool) -> str:
        spoken, time = self.turns[turn], self._times[turn]
        when = f"({time}) " if dated and time else ""
        return f"{when}{spoken.speaker}: {in_quotes(spoken.text)}"

    def in_order(self, turns: Iterable[str]) -> Sequence[str]:
        """Turns in the order in which they were said."""
        return sorted(set(turns), key=self._order.__getitem__)


def in_quotes(text: str) -> str:
    """A text as models are shown what was said."""
    return json.dumps(text, ensure_ascii=False)
