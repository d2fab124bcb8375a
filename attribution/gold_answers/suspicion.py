"""A suspicion: what in the conversation speaks against a gold answer, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Doubt = Literal["unsaid", "speaker", "date", "event", "premise"]
"""What can be wrong with an annotation: nobody says the answer; another speaker says it; the dated evidence gives
another time; the cited turn is about another event; the question's premise is false."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Evidence of one kind against a gold answer.

    Attributes:
        doubt: its kind.
        strong: whether it counts by itself; a weak one needs a reply that the conversation supports.
        supported: whether the reply is what the conversation supports.
        reason: one plain sentence that names turns and values.
        turns: ids of the turns that speak against the answer, those cited first.
    """

    doubt: Doubt
    strong: bool
    supported: bool
    reason: str
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A gold answer that is probably wrong.

    Attributes:
        question: id of its question.
        doubt: what is wrong with it.
        confidence: in (0, 1), how likely the annotation is wrong; `confidence.CONFIDENCE` says how that is known.
        reason: one plain sentence that names turns and values.
        turns: ids of the turns that speak against it.
        supported: whether the reply, where there is one, is what the conversation supports.
    """

    question: str
    doubt: Doubt
    confidence: float
    reason: str
    turns: tuple[str, ...]
    supported: bool = False

    @property
    def goes_by_words(self) -> bool:
        """Whether it says no more than that nobody uses the answer's words: the content may be told in others."""
        return self.doubt == "unsaid" and not self.supported
