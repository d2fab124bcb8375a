"""Several observers of one run as one observer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from optimizer.evaluation.scores import Score, SplitName
from optimizer.gating.verdict import Verdict
from optimizer.tuning.results import IterationRecord, Observer

if TYPE_CHECKING:
    from attribution.signals import Signal
    from tracing.llm.accounting.budget import Budget


@runtime_checkable
class WatchesBudget(Protocol):
    """An observer that shows what a run spends, also between the things that it is told."""

    def watch(self, budget: Budget) -> None:
        """Called once, before the run makes its first call."""
        ...


class Observers:
    """Passes everything on to each of several observers, in order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def baseline(self, split: SplitName, score: Score) -> None:
        for observer in self._observers:
            observer.baseline(split, score)

    def blame(self, iteration: int, signals: Sequence[Signal]) -> None:
        for observer in self._observers:
            observer.blame(iteration, signals)

    def iteration(self, record: IterationRecord) -> None:
        for observer in self._observers:
            observer.iteration(record)

    def verdict(self, verdict: Verdict) -> None:
        for observer in self._observers:
            observer.verdict(verdict)

    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        for observer in self._observers:
            observer.progress(phase, done, total, failed)
