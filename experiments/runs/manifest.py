"""Where exported prompts come from: the part of their manifest that the run knows."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from experiments.runs.config_file import read_config
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
    """Run, model, data, result and caveats of a run, as plain JSON values.

    `tuned` names the prompts whose text is not the seed's; where there is none, the caveats say so first.

    Raises:
        RunError, ConfigError: the run's prompts or settings cannot be read.
    """
    seed, champion = folder.prompts("seed"), folder.prompts("champion")
    tuned = [name for name, text in champion.items() if text != seed.get(name)]
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
        "tuned": tuned,
        "caveats": [*_of_result(summary, tuned), *_of_system(folder)],
    }


def _of_result(summary: Summary, tuned: Sequence[str]) -> list[str]:
    if not tuned:
        return ["These are the seed prompts, unchanged: no rewrite passed the gate, so nothing here is tuned."]
    if summary.verdict == "improved":
        return []
    return [
        {
            "regressed": "On the test conversations these prompts answered worse than the seed prompts.",
            "inconclusive": "The test conversations do not show that these prompts are better than the seed prompts.",
        }.get(summary.verdict or "", f"The run has no verdict on these prompts ({summary.stopped}).")
    ]


def system_settings(folder: RunFolder) -> dict[str, Any]:
    """The settings of a run's memory system; none where the run has no configuration file."""
    path = folder.path / CONFIG
    return dict(read_config(str(path)).system_settings) if path.is_file() else {}


def _of_system(folder: RunFolder) -> list[str]:
    path = folder.path / CONFIG
    if not path.is_file():
        return []
    config = read_config(str(path))
    return caveats_of(config.system, config.system_settings, embedded=config.models.task.embedded)
