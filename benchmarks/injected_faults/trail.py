"""Where an answer's content goes in a run, by annotation and lineage: from the annotated turns on, word for word.

No text is compared by meaning here. What is annotated says which turn the content is said in and in which words; what
an operation makes of that turn carries it if those words or an accepted answer are in it; later steps are followed by
the very texts that earlier ones emitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from benchmarks.injected_faults.wordings import Wordings
from tracing.graph.elements import Variable
from tracing.systems.conversations import Conversation, Fact, Question

_SHORT = 2


@dataclass(frozen=True, slots=True)
class Content:
    """What is annotated about a piece of content.

    Attributes:
        turns: ids of the turns that say it.
        texts: those messages, and the facts that they are annotated with in every wording; none ends with a full stop.
        values: the values that it is about, any of them.
    """

    turns: frozenset[str]
    texts: tuple[str, ...]
    values: tuple[str, ...]


class ContentTrail:
    """The texts of one run that carry a piece of content; it grows while the run is followed."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._texts = dict.fromkeys(content.texts)
        self._spoilt: dict[str, None] = {}

    def among(self, messages: Sequence[Variable], statements: Sequence[str]) -> tuple[int, ...]:
        """Which of the statements that were made of these messages carry the content, by their places."""
        read = any(one.name in self._content.turns or self.on(str(one.value)) for one in messages)
        if not read:
            return ()
        annotated = self._places(statements, self.on)
        return annotated or self._places(statements, lambda text: any(holds(text, value) for value in self.values))

    def on(self, text: str) -> bool:
        """Whether a text holds one of the trail word for word."""
        return any(one in text for one in (*self._spoilt, *self._texts))

    def is_sound_in(self, text: str) -> bool:
        """Whether a text holds one of the trail that no fault has changed."""
        for spoilt in self._spoilt:
            if any(one in spoilt for one in self._texts):
                text = text.replace(spoilt, "")
        return any(one in text for one in self._texts)

    def follow(self, text: str, *, spoilt: bool = False) -> None:
        """Put a text on the trail that was made of one on it; `spoilt` if a fault has changed it."""
        if text.strip():
            (self._spoilt if spoilt else self._texts)[text.strip().removesuffix(".")] = None

    @property
    def values(self) -> tuple[str, ...]:
        """The values that the content is about."""
        return self._content.values

    @staticmethod
    def _places(statements: Sequence[str], carries: Callable[[str], bool]) -> tuple[int, ...]:
        return tuple(place for place, text in enumerate(statements) if carries(text))


@cache
def as_words(value: str) -> re.Pattern[str]:
    """Finds a value in a text, as words. `re` itself remembers too few patterns for all values of a data set."""
    return re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)


def holds(text: str, value: str) -> bool:
    """Whether a text has a value in it, as words."""
    return as_words(value).search(text) is not None


def needed_by(question: Question, wordings: Wordings) -> Content:
    """What a question's answer needs: its evidence and its fact."""
    fact = _fact(wordings.conversation, question.fact)
    turns = {*question.evidence, *([fact.turn] if fact is not None else [])}
    values = () if question.unanswerable else question.answers
    return _content(turns, [fact] if fact is not None else [], values, wordings)


def former_of(question: Question, wordings: Wordings) -> Content | None:
    """What held before the answer was changed or withdrawn; None where nothing did, or it is not annotated."""
    fact = _fact(wordings.conversation, question.fact)
    former = _fact(wordings.conversation, fact.of) if fact is not None else None
    if former is None:
        return near_to(question, wordings) if question.supersedes or question.unanswerable else None
    near = question.near_miss
    values = (near.value,) if near is not None and near.turn == former.turn else ()
    return _content({former.turn}, [former], values, wordings)


def near_to(question: Question, wordings: Wordings) -> Content | None:
    """What could be taken for the answer, as annotated."""
    near = question.near_miss
    if near is None:
        return None
    facts = [fact for fact in wordings.conversation.facts if fact.turn == near.turn and holds(fact.text, near.value)]
    return _content({near.turn}, facts, (near.value,), wordings)


def _content(turns: set[str], facts: Sequence[Fact], values: Sequence[str], wordings: Wordings) -> Content:
    told = [wording for fact in facts for wording in wordings.of_fact[fact.id]]
    # A message of a word or two would be found in texts that have nothing to do with it.
    said = [one.text for one in wordings.conversation.turns() if one.id in turns and len(one.text.split()) > _SHORT]
    texts = dict.fromkeys(text.strip().removesuffix(".") for text in (*told, *said) if text.strip())
    return Content(frozenset(turns), tuple(texts), tuple(values))


def _fact(conversation: Conversation, name: str | None) -> Fact | None:
    return next((fact for fact in conversation.facts if fact.id == name), None)
