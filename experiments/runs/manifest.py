"""Where exported prompts come from: the part of their manifest that the run knows."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from experiments.runs.config import read_config
from experiments.runs.folder import CONFIG, RunFolder
from experiments.runs.summary import Summary
from tracing.systems.registry import caveats_of


def memtune_version() -> str:
    """The installed version; `source` where memtune runs from a folder that is not installed."""
    try:
        return version("memtune")
    except PackageNotFoundError:
        return "source"


def manifest_of(folder: RunFolder, summary: Summary) -> dict[str, Any]:
    """Run, model, data, result and caveats of a run, as plain JSON values."""
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
        "caveats": _caveats(folder),
    }


def system_settings(folder: RunFolder) -> dict[str, Any]:
    """The settings of a run's memory system; none where the run has no configuration file."""
    path = folder.path / CONFIG
    return dict(read_config(str(path)).system_settings) if path.is_file() else {}


def _caveats(folder: RunFolder) -> list[str]:
    path = folder.path / CONFIG
    if not path.is_file():
        return []
    config = read_config(str(path))
    return caveats_of(config.system, config.system_settings, embedded=config.models.task.embedded)
