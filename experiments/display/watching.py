"""A run that another process works on, shown by what its folder says."""

from __future__ import annotations

import time
from collections.abc import Callable

from experiments.display.tables import RunView
from experiments.runs.folder import RunFolder
from experiments.runs.progress import read_progress, with_rewrites
from tracing.llm.accounting.budget import Budget, Spending
from tracing.llm.settings import Limits

LOOKS_EVERY = 1.0
"""Seconds between two looks at the folder."""


class WatchedRun:
    """Tells a view what is new in a run's folder.

    Args:
        folder: of the run.
        view: is told as an observer of the run is.
        say: prints a line about the process that works on it.
    """

    def __init__(self, folder: RunFolder, view: RunView, say: Callable[[str], None]) -> None:
        self._folder, self._view, self._say = folder, view, say
        self._budget = Budget(Limits())
        view.watch(self._budget)
        self._process: str | None = None
        self._splits: set[str] = set()
        self._rounds = 0

    def follow(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Tell what is new until no process works on the run.

        Raises:
            RunError: a file of the run is damaged.
        """
        # The process is looked for first: what is then read of a run without one is all that there will be.
        while (process := self._folder.process) is not None:
            self._look(process)
            sleep(LOOKS_EVERY)
        self._look(None)

    def _look(self, process: str | None) -> None:
        progress = read_progress(self._folder) if process is not None else None
        if process is not None and process != self._process:
            again = ", resumed" if progress is not None and progress.resumed else ""
            self._say(f"watching {self._folder.id}: process {process} works on it{again}; Ctrl-C leaves it running")
            self._process = process
        if self._folder.has_summary:
            summary = self._folder.summary()
            for split, score in summary.baseline.items():
                if split not in self._splits:
                    self._splits.add(split)
                    self._view.baseline(split, score)
            if len(summary.rounds) > self._rounds:
                for record in with_rewrites(self._folder, summary.rounds[self._rounds :]):
                    self._view.round(record)
                self._rounds = len(summary.rounds)
        if progress is not None:
            spent = self._budget.spent
            more = Spending(progress.calls - spent.calls, 0, progress.money - spent.money)
            self._budget.settle(Spending(), more)
            self._view.progress(progress.phase, progress.done, progress.total, progress.failed)
