"""What a benchmark shows of a run: its phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attribution.signals import Signal
from experiments.bench.attribution import Progress
from optimizer.evaluation.scores import Score, SplitName
from optimizer.gating.verdict import Verdict
from optimizer.tuning.round import RoundRecord


@dataclass(frozen=True, slots=True)
class Phases:
    """An observer that passes progress on, under the name of the run."""

    report: Progress
    name: str

    def baseline(self, split: SplitName, score: Score) -> None:
        """Not shown."""

    def blame(self, n: int, signals: Sequence[Signal]) -> None:
        """Not shown."""

    def round(self, record: RoundRecord) -> None:
        """Not shown."""

    def verdict(self, verdict: Verdict) -> None:
        """Not shown."""

    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        self.report(f"{self.name}: {phase}", done, total)
