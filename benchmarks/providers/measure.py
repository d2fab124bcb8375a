"""Counts of what became of providers' habits, by habit, and by command and memory system."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pydantic import BaseModel

from benchmarks.providers.habits import HABITS
from benchmarks.providers.zoo import COMMANDS, SYSTEMS, Command, Outcome, Zoo, models_alone
from experiments.bench.attribution import Progress


class Counts(BaseModel):
    """How often a habit was tried, and what became of it."""

    tried: int = 0
    same_score: int = 0
    told: int = 0
    silent: int = 0

    def count(self, outcome: Outcome) -> None:
        """Count one more."""
        self.tried += 1
        self.same_score += outcome == "same score"
        self.told += outcome == "told"
        self.silent += outcome == "silent"


class HabitFigures(Counts):
    """Of one habit; `why` has the command, the system and the reason of each silent outcome."""

    why: list[str] = []


class Total(Counts):
    """Of all habits, with one command and memory system."""

    command: Command
    system: str


class ProviderFigures(BaseModel):
    """What was measured: by name of the habit, and in total."""

    habits: dict[str, HabitFigures] = {}
    totals: list[Total] = []


def measure_providers(
    habit: str = "", command: str | None = None, system: str | None = None, *, progress: Progress
) -> ProviderFigures:
    """Try all habits with `habit` in their name, with every command and system or with the named ones."""
    chosen = [found for name, found in HABITS.items() if habit in name]
    figures = ProviderFigures(habits={found.name: HabitFigures() for found in chosen})
    figures.totals = [
        Total(command=each, system=other)
        for other in SYSTEMS
        for each in COMMANDS
        if command in (None, each) and system in (None, other)
    ]
    with tempfile.TemporaryDirectory(prefix="memtune-zoo-") as folder, models_alone():
        zoo = Zoo(Path(folder))
        try:
            for total in figures.totals:
                for number, found in enumerate(chosen):
                    progress(f"{total.command}, {total.system}", number, len(chosen))
                    outcome, why = zoo.outcome(found, total.command, total.system)
                    total.count(outcome)
                    figures.habits[found.name].count(outcome)
                    if outcome == "silent":
                        figures.habits[found.name].why.append(f"{total.command}, {total.system}: {why}")
        finally:
            zoo.close()
    return figures
