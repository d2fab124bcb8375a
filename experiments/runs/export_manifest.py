"""Where exported prompts come from: the part of their manifest that the run knows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from experiments.runs.config_file import read_config
from experiments.runs.folder import BASELINE, CHAMPION, CONFIG, RunFolder
from experiments.runs.summary import Summary
from tracing.errors import RunError
from tracing.systems.registry import caveats_of
from tracing.version import memtune_version


def manifest_of(folder: RunFolder, summary: Summary | None) -> dict[str, Any]:
    """Run, model, data, result and caveats of a run, as plain JSON values.

    `tuned` names the prompts whose text is not the baseline's; where there is none, the caveats say so first. It is
    null if the baseline cannot be read. Without a summary that can be read there is no result.

    Raises:
        RunError, ConfigError: the champion's prompts or the run's settings cannot be read.
    """
    champion, tuned = folder.prompts(CHAMPION), None
    with suppress(RunError):
        baseline = folder.prompts(BASELINE)
        tuned = [name for name, text in champion.items() if text != baseline.get(name)]
    return {
        "memtune": memtune_version(),
        **({"run_id": folder.id} if summary is None else _result(summary)),
        "tuned": tuned,
        "caveats": [
            *([_NO_RESULT] if summary is None else [*_of_result(summary, tuned), *_of_settings(summary)]),
            *([_NO_BASELINE] if tuned is None else []),
            *_of_system(folder, summary),
        ],
    }


_NO_RESULT = "The summary of the run could not be read: on what the prompts were tuned, and how well, is unknown here."
_NO_BASELINE = "The baseline prompts of the run could not be read: which of these prompts are tuned is unknown here."


def _result(summary: Summary) -> dict[str, Any]:
    return {
        "run_id": summary.run_id,
        "model": summary.model,
        "dataset": summary.dataset,
        "metric": summary.metric,
        "seed": summary.seed,
        "verdict": summary.verdict,
        "delta": summary.delta,
        "margin": summary.margin,
        "tokens_per_question": dict(summary.tokens_per_question),
        "baseline": {name: score.score for name, score in summary.baseline.items()},
        "champion": {name: score.score for name, score in summary.champion.items()},
        "settings": {name: asdict(change) for name, change in summary.settings.items()},
        "prompts_alone": asdict(summary.prompts_alone) if summary.prompts_alone is not None else None,
        "settings_alone": asdict(summary.settings_alone) if summary.settings_alone is not None else None,
    }


def _of_result(summary: Summary, tuned: Sequence[str] | None) -> list[str]:
    if tuned == []:
        return ["These are the baseline prompts, unchanged: no rewrite took their place, so no text here is tuned."]
    if summary.verdict in ("improved", "cheaper"):
        return []
    return [
        {
            **dict.fromkeys(
                ("regressed", "worse"),
                "On the test conversations these prompts answered worse than the baseline prompts.",
            ),
            "inconclusive": "The test conversations do not show that these prompts are better than the baseline "
            "prompts.",
        }.get(summary.verdict or "", f"The run has no verdict on these prompts ({summary.stopped}).")
    ]


def system_settings(folder: RunFolder, summary: Summary | None) -> dict[str, Any]:
    """The settings of a run's memory system with those that it tuned; without a configuration file these alone."""
    path = folder.path / CONFIG
    own = read_config(str(path)).system_settings if path.is_file() else {}
    tuned = {} if summary is None else summary.settings
    return {**own, **{name: change.after for name, change in tuned.items()}}


def _of_settings(summary: Summary) -> list[str]:
    if not summary.settings:
        return []
    return [f"{summary.settings_sentence} These prompts were measured with these settings: use both."]


def _of_system(folder: RunFolder, summary: Summary | None) -> list[str]:
    path = folder.path / CONFIG
    if not path.is_file():
        return []
    config = read_config(str(path))
    return caveats_of(config.system, system_settings(folder, summary), embedded=config.models.task.embedded)
