"""Blame of single questions: which inputs a prompt can gain nothing at, and who is to blame beside a plain search."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from test_selection import signal

from attribution.cases import Attribution, Blame, Case, ErrorType
from attribution.judging.words import Judgement
from optimizer.objectives.objective import RecordedInput
from optimizer.search.question_faults import QuestionFaults
from tracing.systems.conversations import Question
from tracing.systems.protocol import OperationSpec

OPERATIONS = (
    OperationSpec("extract", "extract", prompt="extract"),
    OperationSpec("ask", "retrieve", prompt="queries"),
    OperationSpec("check", "retrieve", prompt="verdict"),
    OperationSpec("search", "retrieve", None),
    OperationSpec("answer", "answer", prompt="answer"),
)
WRONG = {"q1": "search", "q2": "search", "q3": "extract", "q4": "answer"}
ERRORS: dict[str, ErrorType] = {
    "search": "RetrievalError",
    "extract": "ExtractionError",
    "answer": "ResponseError",
}


def attribution(question: str, operation: str) -> Attribution:
    case = Case("c", Question(id=question, question="?", answers=("a",)), "", Judgement(0.0, 0.0, 0.0, 0.0))
    return Attribution(case, (Blame(operation, None, ERRORS[operation], 0.9, ""),))


def recorded(question: str | None) -> RecordedInput:
    conversation: Any = SimpleNamespace(id="c")
    asked = None if question is None else Question(id=question, question="?", answers=("a",))
    return RecordedInput(f"input of {question}", None, conversation, {}, question=asked)  # type: ignore[arg-type]


INPUTS = [recorded(f"q{n}") for n in range(1, 7)]
FAULTS = QuestionFaults(
    OPERATIONS, {("c", question) for question in WRONG}, [attribution(*wrong) for wrong in WRONG.items()]
)


@pytest.mark.parametrize(
    ("prompt", "others"),
    [
        ("answer", {"q1", "q2", "q3"}),
        ("queries", {"q3", "q4"}),
        ("verdict", {"q3", "q4"}),
        ("extract", {"q1", "q2", "q4"}),
    ],
)
def test_a_question_that_other_prompts_got_wrong_is_nothing_to_mend_for_this_one(prompt: str, others: set[str]) -> None:
    inputs = [*INPUTS, recorded(None)]
    assert FAULTS.elsewhere(prompt, inputs) == {f"input of {question}" for question in others}


def test_where_nothing_is_attributed_no_input_is_met_last() -> None:
    assert QuestionFaults(OPERATIONS, FAULTS.wrong, []).elsewhere("answer", INPUTS) == set()


def beside(**credits: list[float | None]) -> dict[str, float]:
    signals = [replace(signal(name, 0.1), beside=0.15) for name in ("queries", "verdict")] + [signal("answer", 0.2)]
    counted = FAULTS.beside(signals, dict.fromkeys(credits, INPUTS), credits)
    return {each.prompt or "": each.beside for each in counted}


def test_what_a_search_missed_counts_for_the_prompt_that_did_worse_there_than_where_the_answer_was_right() -> None:
    usual, right = [0.6] * 6, [1.0] * 6
    assert beside(queries=usual, verdict=[0.0, 0.0, 1.0, 1.0, 1.0, 1.0]) == pytest.approx(
        {"queries": 0.0, "verdict": 0.3, "answer": 0.0}
    )
    # At q1 the verdict lost 1, and at q2 the queries lost 0.3 more than they do at q5 and q6.
    mixed = beside(queries=[0.6, 0.3, 0.0, None, 0.6, 0.6], verdict=[0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    assert mixed == pytest.approx({"queries": 0.3 * 0.3 / 1.3, "verdict": 0.3 * 1 / 1.3, "answer": 0.0})
    # Where none did worse, and of a prompt of which nothing was recorded, it stays as it was.
    assert beside(queries=usual, verdict=right) == pytest.approx({"queries": 0.15, "verdict": 0.15, "answer": 0.0})
    assert beside(verdict=[0.0] * 4 + [1.0] * 2)["queries"] == pytest.approx(0.15)
