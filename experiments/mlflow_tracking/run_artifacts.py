"""Tables and charts of a run among its artifacts in MLflow: its cases, its rewrites, and who is at fault."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from experiments.display.charts import bars, bars_height, png
from experiments.mlflow_tracking.store import TrackingStore
from experiments.mlflow_tracking.writes import LogTable, Write
from experiments.runs.seen_cases import SeenCase
from optimizer.tuning.round import RoundRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from attribution.signals import Signal

SIDES = ("baseline", "champion")
"""In the order of `case_tables`' arguments; they name columns, traces, and the runs that have these."""

EXPECTED = "expected_answer"
"""The expectation of a trace or a record that has the accepted answers."""

SEPARATOR = " | "
"""Between the accepted answers to a question, where they are one text."""

_QUESTION_COLUMNS = ("conversation", "question_id", "kind", "question", "answers")
_RESULT = ("reply", "score", "f1", "blamed", "error_type", "confidence", "reason")
REWRITES = "rewrites.json"
_REWRITE_COLUMNS = (
    "round",
    "prompt",
    "source",
    "reason",
    "gain on recorded inputs",
    "gain on conversations",
    "gate",
    "champion",
    "text",
)
BLAME_CHART = "blame/share of wrong answers"
"""Name of the picture; what stands before the slash is its section among the charts."""
_PICTURE_SIDE = 3.6
"""In inches: MLflow shows pictures in small squares, in which writing should be legible."""
_PICTURES = "images"
"""Where MLflow keeps pictures; their names have the step between signs of its own."""


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


def rewrites_table(records: Sequence[RoundRecord]) -> LogTable:
    """`rewrites.json` with the rewrites of these rounds; gains are over the champion of the time, in score."""
    rows = [
        (
            record.n,
            rewrite.prompt,
            rewrite.source,
            rewrite.reason,
            rewrite.local,
            rewrite.screening,
            rewrite.gate and str(rewrite.gate),
            record.accepted and (record.champion or {}).get(rewrite.prompt) == rewrite.text,
            rewrite.text,
        )
        for record in records
        for rewrite in record.rewrites
    ]
    return LogTable(
        path=REWRITES, columns={name: [row[place] for row in rows] for place, name in enumerate(_REWRITE_COLUMNS)}
    )


class LogBlameChart(Write):
    """All operations' shares of the loss at one step, largest on top, on an axis from 0 to 100 %.

    The blame of the first round is that of the baseline and has step 0, as the baseline's score has: of several
    pictures MLflow shows that first.
    """

    kind: Literal["blame chart"] = "blame chart"
    step: int
    shares: tuple[tuple[str, float, tuple[float, float]], ...]

    def apply(self, store: TrackingStore, folder: Path) -> None:
        from PIL import Image

        run = store.run_id(self.run)
        there = re.compile(rf"\Wstep\W{self.step}\W")
        if any(there.search(file.path) for file in store.client.list_artifacts(run, _PICTURES)):
            return
        height = max(_PICTURE_SIDE, bars_height(len(self.shares)))
        picture = Image.open(io.BytesIO(png(self._draw, width=_PICTURE_SIDE, height=height)))
        store.client.log_image(run, picture, key=BLAME_CHART, step=self.step, synchronous=True)

    def _draw(self, axes: Axes) -> None:
        rows = sorted(self.shares, key=lambda row: row[1])
        bars(axes, [row[0] for row in rows], [row[1] for row in rows], cis=[row[2] for row in rows])
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.set_xlabel(f"share of wrong answers, round {self.step + 1}", loc="right")


def blame_chart(n: int, signals: Sequence[Signal]) -> list[LogBlameChart]:
    """The write, if anything was blamed."""
    shares = tuple((signal.operation, signal.share, signal.share_ci) for signal in signals)
    return [LogBlameChart(step=n - 1, shares=shares)] if shares else []
