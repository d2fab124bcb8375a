"""The gold content of every question of a conversation, computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attribution.survival.gold import Gold
from attribution.survival.matching.matcher import Matcher
from attribution.text.content import Vocabulary
from tracing.systems.conversations import Conversation


class Golds:
    """Gold content by conversation.

    Args:
        verbatim: the system stores what was said word for word.
        matching: sets up what decides what a text carries in a conversation; by default its words do.
    """

    def __init__(self, *, verbatim: bool, matching: Callable[[Conversation], Matcher] | None = None) -> None:
        self._verbatim, self._matching = verbatim, matching
        self._conversations: dict[str, tuple[Sequence[Gold], Vocabulary]] = {}

    def of(self, conversation: Conversation) -> Sequence[Gold]:
        """The gold content of each question."""
        return self._both(conversation)[0]

    def vocabulary(self, conversation: Conversation) -> Vocabulary:
        """How informative each word is in the conversation."""
        return self._both(conversation)[1]

    def _both(self, conversation: Conversation) -> tuple[Sequence[Gold], Vocabulary]:
        if conversation.id not in self._conversations:
            vocabulary = Vocabulary(turn.text for turn in conversation.turns())
            matcher = None if self._matching is None else self._matching(conversation)
            golds = [
                Gold(question, conversation, vocabulary, verbatim=self._verbatim, matcher=matcher)
                for question in conversation.questions
            ]
            self._conversations[conversation.id] = golds, vocabulary
        return self._conversations[conversation.id]
