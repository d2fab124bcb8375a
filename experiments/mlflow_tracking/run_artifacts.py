"""Tables and charts of a run among its artifacts in MLflow: its cases, its rewrites, and who is at fault."""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from experiments.display.charts import bars_height, png, share_bars
from experiments.mlflow_tracking.store import TrackingStore
from experiments.mlflow_tracking.writes import LogTable, LogText, Write
from experiments.runs.seen_cases import SeenCase
from optimizer.tuning.round import RoundRecord
from optimizer.tuning.tried import TriedCandidate
from tracing.recording.redaction import Redaction

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
REWRITES, TRIED = "rewrites.json", "tried.json"
_SIGNAL = ("operation", "prompt", "share", "share_ci", "failures", "loss", "error_types", "fixable", "cases")
"""What `blame.json` has of a signal."""
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
    return [_table(f"cases/{split}.json", split_rows.values(), columns) for split, split_rows in rows.items()]


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


def round_artifacts(run: str, rounds: Sequence[RoundRecord]) -> Iterator[Write]:
    """Files of the latest of these rounds, in its run, and the table of the rewrites so far, if it has any."""
    record = rounds[-1]
    for name, text in (record.champion or {}).items():
        yield LogText(run=run, path=f"prompts/champion/{name}.txt", text=text)
    if record.edit is not None:
        yield _json(run, "edit.json", Redaction().value(asdict(record.edit)))
    if record.settings:
        yield _json(run, "settings.json", [asdict(setting) for setting in record.settings])
    if record.rewrites:
        yield _rewrites_table(rounds)


def _json(run: str, path: str, value: Any) -> LogText:
    return LogText(run=run, path=path, text=json.dumps(value, indent=2, ensure_ascii=False, default=dict))


def _rewrites_table(records: Sequence[RoundRecord]) -> LogTable:
    """Gains are over the champion of the time, in score."""
    rows = [
        {
            "round": record.n,
            "prompt": rewrite.prompt,
            "source": rewrite.source,
            "reason": rewrite.reason,
            "gain on recorded inputs": rewrite.local,
            "gain on conversations": rewrite.screening,
            "gate": rewrite.gate and str(rewrite.gate),
            "champion": record.accepted and (record.champion or {}).get(rewrite.prompt) == rewrite.text,
            "text": rewrite.text,
        }
        for record in records
        for rewrite in record.rewrites
    ]
    return _table(REWRITES, rows, rows[0])


def tried_table(tried: Sequence[TriedCandidate]) -> Iterator[Write]:
    """`tried.json`: what met whole conversations, with its score and tokens, and which of it nothing beats."""
    if len(tried) > 1:
        yield _table(TRIED, [asdict(candidate) for candidate in tried], TriedCandidate.__slots__)


def _table(path: str, rows: Collection[Mapping[str, Any]], columns: Iterable[str]) -> LogTable:
    return LogTable(path=path, columns={name: [row.get(name) for row in rows] for name in columns})


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

        def draw(axes: Axes) -> None:
            share_bars(axes, self.shares)
            axes.set_xlabel(f"share of wrong answers, round {self.step + 1}", loc="right")

        height = max(_PICTURE_SIDE, bars_height(len(self.shares)))
        picture = Image.open(io.BytesIO(png(draw, width=_PICTURE_SIDE, height=height)))
        store.client.log_image(run, picture, key=BLAME_CHART, step=self.step, synchronous=True)


def blame_artifacts(run: str, n: int, signals: Sequence[Signal]) -> Iterator[Write]:
    """The blame of round `n`: `blame.json` in its run, and the chart if anything was blamed."""
    shares = tuple((signal.operation, signal.share, signal.share_ci) for signal in signals)
    if shares:
        yield LogBlameChart(step=n - 1, shares=shares)
    yield _json(run, "blame.json", {"signals": [{key: getattr(signal, key) for key in _SIGNAL} for signal in signals]})
