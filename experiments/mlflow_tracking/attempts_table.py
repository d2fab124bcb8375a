"""Every rewrite that was tried, as a table: its text, where it comes from, how it was measured and decided."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.mlflow_tracking.writes import LogTable
from optimizer.tuning.results import IterationRecord

PATH = "attempts.json"

_COLUMNS = (
    "iteration",
    "prompt",
    "source",
    "reason",
    "gain on recorded inputs",
    "gain on conversations",
    "gate",
    "champion",
    "text",
)


def attempts_table(records: Sequence[IterationRecord]) -> LogTable:
    """`attempts.json` with the attempts of these iterations; gains are over the champion of the time, in score."""
    rows = [
        (
            record.n,
            attempt.prompt,
            attempt.source,
            attempt.reason,
            attempt.local,
            attempt.screening,
            attempt.gate and str(attempt.gate),
            record.accepted and (record.champion or {}).get(attempt.prompt) == attempt.text,
            attempt.text,
        )
        for record in records
        for attempt in record.attempts
    ]
    return LogTable(path=PATH, columns={name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)})
