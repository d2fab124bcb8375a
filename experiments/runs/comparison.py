"""Runs side by side: what was the same, and the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.runs.folder import RunFolder
from experiments.runs.intervals import interval_text, money_text, p_text
from experiments.runs.summary import Summary
from tracing.errors import RunError

COMPARABLE = ("dataset", "splits", "metric", "model")
"""What must agree for the scores of two runs to be comparable."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Several runs.

    Attributes:
        rows: what, and its value in each run, in reading order.
        differences: the keys of `COMPARABLE` in which they differ; if there are any, the scores are not comparable.
        prompts: prompt name → whether all champions have the same text.
    """

    rows: tuple[tuple[str, ...], ...]
    differences: tuple[str, ...]
    prompts: dict[str, bool]


def list_runs(home: Path) -> list[tuple[RunFolder, Summary | None]]:
    """Every run under a home, latest first; None for a summary that is missing or unreadable."""
    found: list[tuple[RunFolder, Summary | None]] = []
    for folder in reversed(RunFolder.all(home)):
        try:
            found.append((folder, folder.summary()))
        except RunError:
            found.append((folder, None))
    return found


def compare(*folders: RunFolder) -> RunComparison:
    """Compare runs by their folders.

    Raises:
        RunError: one has no readable summary or no prompts.
    """
    summaries = [folder.summary() for folder in folders]
    champions = [folder.prompts("champion") for folder in folders]
    names = dict.fromkeys(name for champion in champions for name in champion)
    facts = zip(*(_facts(summary) for summary in summaries), strict=True)
    return RunComparison(
        rows=tuple((row[0][0], *(value for _, value in row)) for row in facts),
        differences=tuple(
            key for key in COMPARABLE if any(getattr(one, key) != getattr(summaries[0], key) for one in summaries)
        ),
        prompts={name: len({champion.get(name) for champion in champions}) == 1 for name in names},
    )


def _facts(summary: Summary) -> Iterator[tuple[str, str]]:
    for key in ("system", "dataset", "model", "metric", "attribution", "optimizer"):
        yield key, str(getattr(summary, key) or "–")
    yield "seed", str(summary.seed)
    for split in ("validation", "test"):
        for side, title in (("baseline", "seed prompts"), ("champion", "champion")):
            score = getattr(summary, side).get(split)
            text = f"{score.score:.3f} ({interval_text(score.ci)})" if score else "–"
            yield f"{title}, {split}", text
    yield "settings tuned", ", ".join(f"{name} {each.after}" for name, each in summary.settings.items()) or "–"
    yield "verdict", summary.verdict or "–"
    yield "delta", "–" if summary.delta is None else f"{summary.delta:+.3f}"
    yield "p value", p_text(summary.p_value)
    yield (
        "rewrites accepted",
        f"{sum(row.accepted for row in summary.iterations)} of {len(summary.iterations)} iterations",
    )
    yield "calls made", f"{summary.calls.made:,}"
    yield "money", money_text(summary.calls.money)
    yield "stopped", summary.stopped
