"""Where exported prompts come from: the part of their manifest that the run knows."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from experiments.summary import Summary


def memtune_version() -> str:
    """The installed version; `source` where memtune runs from a folder that is not installed."""
    try:
        return version("memtune")
    except PackageNotFoundError:
        return "source"


def manifest_of(summary: Summary) -> dict[str, Any]:
    """Run, model, data and result of a run, as plain JSON values."""
    return {
        "memtune": memtune_version(),
        "run_id": summary.run_id,
        "model": summary.model,
        "dataset": summary.dataset,
        "metric": summary.metric,
        "seed": summary.seed,
        "verdict": summary.verdict,
        "delta": summary.delta,
        "baseline": {name: score.score for name, score in summary.baseline.items()},
        "champion": {name: score.score for name, score in summary.champion.items()},
    }
