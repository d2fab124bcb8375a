"""Outcomes written as rows of marks, for what looks at scores alone."""

from attribution.cases import Case
from attribution.judging.words import judge
from optimizer.evaluation.evaluator import Outcome
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Conversation


def outcomes(*rows: str, tainted: str | None = None) -> list[Outcome]:
    """One conversation a row; `+` is a question that passes, `-` one that does not."""
    made = []
    for number, row in enumerate(rows):
        questions = [{"id": f"q{n}", "question": "?", "answers": ["yes"]} for n in range(len(row))]
        conversation = Conversation.model_validate(
            {
                "id": f"c{number}",
                "speakers": ["A"],
                "sessions": [{"id": "D1", "turns": [{"id": "D1:1", "speaker": "A", "text": "yes"}]}],
                "questions": questions,
            }
        )
        cases = tuple(
            Case(conversation.id, question, "yes", judge("yes" if mark == "+" else "no", ["yes"]))
            for question, mark in zip(conversation.questions, row, strict=True)
        )
        made.append(Outcome(conversation, cases, ExecutionGraph(), tainted if number == 0 else None))
    return made
