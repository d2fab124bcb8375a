"""Observers of a run: one keeps its folder up to date, so that a run that ends early is not lost."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol, runtime_checkable

from attribution.signals import Signal
from experiments.runs.folder import BASELINE, CASES, CHAMPION, PROGRESS, REWRITES, RunFolder
from experiments.runs.progress import Progress
from experiments.runs.summary import RunFacts, Summary, summarize
from optimizer.evaluation.scores import Score, SplitName
from optimizer.gating.verdict import Verdict
from optimizer.tuning.results import CallCounts, LoopResult, Observer, verdict_figures
from optimizer.tuning.round import RewriteRecord, RoundRecord, SettingChange
from optimizer.tuning.stopped import Stopped
from tracing.errors import RunError
from tracing.formats import stamped
from tracing.llm.accounting.budget import Budget
from tracing.recording.redaction import Redaction
from tracing.systems.prompts import Candidate

PROGRESS_SECONDS = 1.0
"""Between two that are kept of the same phase."""


class RunJournal:
    """An observer that writes `summary.json` and the champion's prompts after every step.

    A resumed run starts over. Until it has come back to what it had found before, its folder keeps that.

    Args:
        folder: of the run.
        facts: what is known of it by now.
        baseline: the prompts it starts from.
        calls: counts the model calls so far.
        earlier: what a resumed run had found before; None for a new one.
        margin: as of the run's verdict, whether it comes to one or not.
    """

    def __init__(
        self,
        folder: RunFolder,
        facts: Callable[[], RunFacts],
        baseline: Candidate,
        calls: Callable[[], CallCounts],
        earlier: Summary | None = None,
        margin: float | None = None,
    ) -> None:
        self._folder, self._facts, self._calls, self._earlier = folder, facts, calls, earlier
        self._margin = margin
        self._scores: dict[SplitName, Score] = {}
        self._rounds: list[RoundRecord] = []
        self._champion: Candidate = dict(baseline)
        self._verdict: Verdict | None = None
        self._changed: Mapping[str, SettingChange] = {}
        self._phase, self._next_progress = "", 0.0
        self.signals: Sequence[Signal] = ()
        """The latest signals, for the report."""
        folder.write_prompts(BASELINE, baseline)
        self._update()

    def baseline(self, split: SplitName, score: Score) -> None:
        self._scores[split] = score
        self._update()

    def blame(self, n: int, signals: Sequence[Signal]) -> None:
        self.signals = signals

    def round(self, record: RoundRecord) -> None:
        self._rounds.append(record)
        if record.champion is not None:
            self._champion = record.champion
        self._changed = record.changed
        self._update()

    def verdict(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        if phase == self._phase and time.monotonic() < self._next_progress:
            return
        calls = self._calls()
        values = Progress(phase, done, total, failed, calls.made, calls.money or 0.0, self._earlier is not None)
        # It is for those who watch: where there is no room for it, the ledger ends the run before anything is lost.
        with contextlib.suppress(RunError):
            self._folder.write(PROGRESS, json.dumps(stamped(PROGRESS, asdict(values))))
        self._phase, self._next_progress = phase, time.monotonic() + PROGRESS_SECONDS

    def result(self, stopped: Stopped) -> LoopResult:
        """What is known so far, as if the run had ended here for the reason `stopped`."""
        verdict = self._verdict
        return LoopResult(
            baseline=dict(self._scores),
            champion={} if verdict is None or verdict.score is None else {"test": verdict.score},
            champion_candidate=self._champion,
            rounds=tuple(self._rounds),
            stopped=stopped,
            calls=self._calls(),
            settings=self._changed,
            tokens_per_question={} if verdict is None else dict(verdict.tokens),
            **verdict_figures(verdict, self._margin),
        )

    def leave(self, stopped: Stopped) -> bool:
        """Whether a resumed run has less than it had found before; if so, only `stopped` changes in its summary."""
        if self._earlier is None or not self._is_behind(self._earlier):
            return False
        self._folder.write_summary(replace(self._earlier, stopped=str(stopped)))
        return True

    def save(self, result: LoopResult) -> Summary:
        """Write prompts and summary of `result`."""
        self._folder.write_prompts(CHAMPION, result.champion_candidate)
        summary = summarize(self._facts(), result)
        self._folder.write_summary(summary)
        return summary

    def _is_behind(self, before: Summary) -> bool:
        if len(self._rounds) != len(before.rounds):
            return len(self._rounds) < len(before.rounds)
        tested = before.verdict is None or self._verdict is not None
        return not (tested and set(before.baseline) <= set(self._scores))

    def _update(self) -> None:
        """Write what is known so far."""
        running = Stopped("running")
        if self.leave(running):
            return
        if self._rounds:
            self._write_rewrites()
        # Those of a resumed run were of what it had found before.
        (self._folder.path / CASES).unlink(missing_ok=True)
        self.save(self.result(running))

    def _write_rewrites(self) -> None:
        redacted = Redaction().value
        lines = [
            json.dumps(redacted(stamped(REWRITES, _row(record, rewrite))), ensure_ascii=False) + "\n"
            for record in self._rounds
            for rewrite in record.rewrites
        ]
        self._folder.write(REWRITES, "".join(lines))


def _row(record: RoundRecord, rewrite: RewriteRecord) -> dict[str, Any]:
    """A rewrite of a round, with the round's optimizer where there are several."""
    by = {} if record.optimizer is None else {"optimizer": record.optimizer}
    return {"round": record.n, **by, **asdict(rewrite), "gate": rewrite.gate and str(rewrite.gate)}


@runtime_checkable
class WatchesBudget(Protocol):
    """An observer that shows what a run spends, also between the things that it is told."""

    def watch(self, budget: Budget) -> None:
        """Called once, before the run makes its first call."""


class Observers:
    """Passes everything on to each of several observers, in order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def baseline(self, split: SplitName, score: Score) -> None:
        for observer in self._observers:
            observer.baseline(split, score)

    def blame(self, n: int, signals: Sequence[Signal]) -> None:
        for observer in self._observers:
            observer.blame(n, signals)

    def round(self, record: RoundRecord) -> None:
        for observer in self._observers:
            observer.round(record)

    def verdict(self, verdict: Verdict) -> None:
        for observer in self._observers:
            observer.verdict(verdict)

    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        for observer in self._observers:
            observer.progress(phase, done, total, failed)
