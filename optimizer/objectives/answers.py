"""The local objective of an answer: the judged reply to a recorded question and context."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attribution.judging.words import Judgement
from attribution.survival.quoting import quote
from optimizer.objectives.objective import Credit, RecordedInput
from tracing.systems.conversations import Question
from tracing.systems.layouts import Item


class AnswerObjective:
    """The score of the reply, whether or not the context contains the answer.

    Args:
        judged: judges a reply as the run does.
    """

    def __init__(self, judged: Callable[[Question, str], Judgement]) -> None:
        self._judged = judged

    def weight(self, given: RecordedInput) -> float:
        """1 for each question."""
        return float(given.question is not None)

    def credit(self, given: RecordedInput, outputs: Sequence[Item]) -> Credit:
        """The reply's score."""
        if given.question is None or not outputs:
            return Credit(0.0, ("no reply",))
        reply = outputs[0].text
        score = self._judged(given.question, reply).score
        if score >= 1:
            return Credit(score)
        return Credit(score, (f"replied {quote(reply)}, where {quote(given.question.answers[0])} is right",))
