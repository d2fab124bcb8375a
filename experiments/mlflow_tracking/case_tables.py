"""Cases as tables, one per split: the question, the answers of seed and champion, and the blame."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from experiments.mlflow_tracking.writes import LogTable
from experiments.runs.seen_cases import SeenCase

SIDES = ("baseline", "champion")
"""In the order of `case_tables`' arguments; they name columns, traces, and the runs that have these."""

EXPECTED = "expected_answer"
"""The expectation of a trace or a record that has the accepted answers."""

SEPARATOR = " | "
"""Between the accepted answers to a question, where they are one text."""

_QUESTION_COLUMNS = ("conversation", "question_id", "kind", "question", "answers")
_RESULT = ("reply", "score", "f1", "blamed", "error_type", "confidence", "reason")


def case_tables(baseline: Sequence[SeenCase], champion: Sequence[SeenCase]) -> list[LogTable]:
    """`cases/train.json`, `cases/validation.json` and `cases/test.json`, with the cases that were seen.

    Values are empty for the candidate under which a case was not evaluated.
    """
    rows: dict[str, dict[tuple[str, str], dict[str, Any]]] = defaultdict(dict)
    for side, cases in zip(SIDES, (baseline, champion), strict=True):
        for seen_case in cases:
            case = seen_case.case
            question = case.question
            about = (case.conversation, question.id, question.kind, question.question, SEPARATOR.join(question.answers))
            row = rows[seen_case.split].setdefault(about[:2], dict(zip(_QUESTION_COLUMNS, about, strict=True)))
            row.update({f"{side} {name}": value for name, value in _result(seen_case).items()})
    columns = (*_QUESTION_COLUMNS, *(f"{side} {name}" for side in SIDES for name in _RESULT))
    return [
        LogTable(
            path=f"cases/{split}.json",
            columns={name: [row.get(name) for row in split_rows.values()] for name in columns},
        )
        for split, split_rows in rows.items()
    ]


def _result(seen_case: SeenCase) -> dict[str, Any]:
    judgement, attribution = seen_case.case.judgement, seen_case.attribution
    result: dict[str, Any] = {"reply": seen_case.case.reply, "score": judgement.score, "f1": judgement.f1}
    if attribution is not None and attribution.decisive:
        blames = attribution.decisive
        result |= {
            "blamed": ", ".join(blame.operation for blame in blames),
            "error_type": ", ".join(blame.error_type for blame in blames),
            "confidence": max(blame.confidence for blame in blames),
            "reason": "; ".join(blame.reason for blame in blames),
        }
    elif attribution is not None:
        result["reason"] = f"not attributed: {attribution.abstained}"
    return result
