"""The questions asked in a trace: right or wrong, the reply beside the gold answer, and whose fault a wrong one is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attribution.cases import Attribution, Blame, Case
from attribution.failures import answers_in
from attribution.history import graph_at
from attribution.text.content import text_of
from tracing.graph.execution_graph import ExecutionGraph
from tracing.recording.redaction import Redaction

Judged = tuple[Case, Attribution | None]
"""A judged question, and its attribution, if one was made."""


def questions_of(graph: ExecutionGraph, judged: Sequence[Judged] = ()) -> list[dict[str, Any]]:
    """Every question with a reply in the graph, in the order asked, as plain data without credentials.

    `passed` is null for what nobody judged. Operations and variables are given by their ids in the graph.
    """
    judged_by_prediction = {case.prediction: (case, attribution) for case, attribution in judged}
    messages = {message.name: message.id for message in reversed(graph.find_variables(kind="message"))}
    questions = []
    for query, prediction in answers_in(graph):
        question_data: dict[str, Any] = {
            "id": query.name,
            "asked": text_of(query.value),
            "reply": text_of(prediction.value),
            "passed": None,
            "session": prediction.session,
            "prediction": prediction.id,
        }
        if prediction.id in judged_by_prediction:
            case, attribution = judged_by_prediction[prediction.id]
            question_data |= _judged(
                case, attribution, [messages[turn] for turn in case.question.evidence if turn in messages]
            )
            if question_data["evidence"]:
                past = graph_at(graph, (), case).variables
                question_data["evidence"] = [message for message in question_data["evidence"] if message in past]
        questions.append(Redaction().value(question_data))
    return questions


def _judged(case: Case, attribution: Attribution | None, evidence: list[str]) -> dict[str, Any]:
    question = case.question
    return {
        "id": question.id,
        "asked": question.question,
        "kind": question.kind,
        "gold": [answer for answer in question.answers if answer],
        "passed": case.passed,
        "score": round(case.judgement.score, 4),
        "evidence": evidence,
        "decisive": [_blame(blame) for blame in attribution.decisive] if attribution is not None else [],
        "alternatives": [_blame(blame) for blame in attribution.alternatives] if attribution is not None else [],
        "abstained": attribution.abstained if attribution is not None else None,
    }


def _blame(blame: Blame) -> dict[str, Any]:
    return {
        "operation": blame.operation,
        "at": blame.operation_id,
        "error": blame.error_type,
        "confidence": round(blame.confidence, 2),
        "reason": blame.reason,
        "evidence": list(blame.evidence),
        "verdict": blame.verdict,
    }
