"""What a reply asserts, where no right answer is known: it is wrong, so who else says it tells where to look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from attribution.cases import Case
from attribution.constants import MADE_UP, STATED
from attribution.survival.flow import Answering, ContentFlow
from attribution.text.content import Vocabulary, content_of, is_date, text_of
from attribution.text.phrases import says_unknown
from tracing.graph.elements import Variable
from tracing.systems.conversations import Conversation

Standing = Literal["nothing", "unknown", "made up", "garbled", "told", "dated"]
"""Of what a reply asserts: nothing but words of the question; that it does not know; what nothing in its context says;
what the memory says and nobody said; what somebody said; or a time, which somebody may have said in other words."""


class Assertion:
    """What the reply to one question asserts beside the question's own words.

    There are no `words` where it asserts nothing, or that it does not know. `standing` says who says it, and
    `carriers` are what the memory holds that does, the nearest first.
    """

    def __init__(
        self, case: Case, answering: Answering, flow: ContentFlow, conversation: Conversation, vocabulary: Vocabulary
    ) -> None:
        self._vocabulary = vocabulary
        question_words = content_of(case.question.question).union(*map(content_of, conversation.speakers))
        unknown = says_unknown(case.reply)
        self.words = frozenset[str]() if unknown else content_of(case.reply) - question_words
        self.carriers: list[Variable] = []
        self.standing: Standing = "unknown" if unknown else "nothing"
        if not self.words:
            return
        lines = [line for piece in answering.context for line in text_of(piece.value).splitlines()]
        in_context = frozenset().union(*map(content_of, lines))
        spoken_words = frozenset().union(*(content_of(turn.spoken) for turn in conversation.turns()))
        share = {entry.id: self._share(content_of(text_of(entry.value))) for entry in flow.current}
        carriers = (entry for entry in flow.current if share[entry.id] >= STATED)
        self.carriers = sorted(carriers, key=lambda entry: share[entry.id], reverse=True)
        if lines and self._share(in_context) < MADE_UP:
            self.standing = "made up"
        elif is_date(case.reply):
            self.standing = "dated"
        elif self.carriers and any(map(self.is_in, lines)) and self._share(spoken_words) < STATED:
            self.standing = "garbled"
        else:
            self.standing = "told"

    def is_in(self, text: str) -> bool:
        """Whether a text says it; nothing does where there is nothing to say."""
        return bool(self.words) and self._share(content_of(text)) >= STATED

    def without_it(self, turns: Iterable[tuple[str, str]]) -> list[str]:
        """Ids of the turns, each with its text, that do not say it; all of them if each does."""
        pairs = list(turns)
        return [turn for turn, text in pairs if not self.is_in(text)] or [turn for turn, _ in pairs]

    def _share(self, words: frozenset[str]) -> float:
        return self._vocabulary.coverage(self.words, words)
