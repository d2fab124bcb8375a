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
    known = {case.prediction: (case, attribution) for case, attribution in judged}
    messages = {one.name: one.id for one in reversed(graph.find_variables(kind="message"))}
    found = []
    for query, prediction in answers_in(graph):
        told: dict[str, Any] = {
            "id": query.name,
            "asked": text_of(query.value),
            "reply": text_of(prediction.value),
            "passed": None,
            "session": prediction.session,
            "prediction": prediction.id,
        }
        if prediction.id in known:
            case, attribution = known[prediction.id]
            told |= _judged(case, attribution, [messages[turn] for turn in case.question.evidence if turn in messages])
            if told["evidence"]:
                past = graph_at(graph, (), case).variables
                told["evidence"] = [message for message in told["evidence"] if message in past]
        found.append(Redaction().value(told))
    return found


def _judged(case: Case, attribution: Attribution | None, evidence: list[str]) -> dict[str, Any]:
    asked = case.question
    return {
        "id": asked.id,
        "asked": asked.question,
        "kind": asked.kind,
        "gold": [answer for answer in asked.answers if answer],
        "passed": case.passed,
        "score": round(case.judgement.score, 4),
        "evidence": evidence,
        "decisive": [_blame(one) for one in attribution.decisive] if attribution is not None else [],
        "alternatives": [_blame(one) for one in attribution.alternatives] if attribution is not None else [],
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
