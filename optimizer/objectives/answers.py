"""The local objective of an answer: the judged reply to a recorded question and context."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attribution.explanations import quote
from attribution.judging.words import Judgement
from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.objectives.objectives import Golds, ObjectiveMeans
from tracing.systems.conversations import Question
from tracing.systems.layouts import Item


class AnswerObjective:
    """The score of the reply, whether or not the context contains the answer.

    Args:
        judged: judges a reply as the run does.
        golds: which contexts contain the answer.
    """

    def __init__(self, judged: Callable[[Question, str], Judgement], golds: Golds) -> None:
        self._judged, self._golds = judged, golds

    def weight(self, execution: RecordedInput) -> float:
        """1 for each question."""
        return float(execution.question is not None)

    def credit(self, execution: RecordedInput, outputs: Sequence[Item]) -> Credit:
        """The reply's score; token F1 tells how near a reply comes, where the metric knows only right and wrong."""
        if execution.question is None or not outputs:
            return Credit(0.0, ("no reply",))
        reply = next((item for item in outputs if item.kind == "prediction"), outputs[0]).text
        judgement = self._judged(execution.question, reply)
        score, near = judgement.score, judgement.f1
        if score >= 1:
            return Credit(score, near=near)
        return Credit(score, (f"replied {quote(reply)}, where {quote(execution.question.answers[0])} is right",), near)

    def right(self, execution: RecordedInput) -> Sequence[Item] | None:
        """The gold answer, if the context contains it."""
        if execution.question is None:
            return None
        context = [item.text for items in execution.parts.values() for item in items if item.kind != "query"]
        gold = next(
            gold for gold in self._golds.of(execution.conversation) if gold.question.id == execution.question.id
        )
        if not context or not gold.answered_by(context):
            return None
        role = execution.outputs[0].role if execution.outputs else "prediction"
        return [Item(role, "prediction", "prediction", gold.answer)]


def answer(means: ObjectiveMeans) -> AnswerObjective:
    """The judged reply to a recorded question and context."""
    return AnswerObjective(means.judged, means.golds)
