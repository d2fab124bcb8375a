"""The gold content of every question of a conversation, computed once."""

from __future__ import annotations

from collections.abc import Sequence

from attribution.survival.gold import Gold
from attribution.text.content import Vocabulary
from tracing.systems.conversations import Conversation


class Golds:
    """Gold content by conversation.

    Args:
        verbatim: the system stores what was said word for word.
    """

    def __init__(self, *, verbatim: bool) -> None:
        self._verbatim = verbatim
        self._known: dict[str, tuple[Sequence[Gold], Vocabulary]] = {}

    def of(self, conversation: Conversation) -> Sequence[Gold]:
        """The gold content of each question."""
        return self._both(conversation)[0]

    def vocabulary(self, conversation: Conversation) -> Vocabulary:
        """How informative each word is in the conversation."""
        return self._both(conversation)[1]

    def _both(self, conversation: Conversation) -> tuple[Sequence[Gold], Vocabulary]:
        if conversation.id not in self._known:
            vocabulary = Vocabulary(turn.text for turn in conversation.turns())
            golds = [
                Gold(question, conversation, vocabulary, verbatim=self._verbatim) for question in conversation.questions
            ]
            self._known[conversation.id] = golds, vocabulary
        return self._known[conversation.id]
