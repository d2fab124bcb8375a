"""Names that keys, options, words and files had before, which still work in this version: each with its name now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tracing.errors import ConfigError
from tracing.suggestions import did_you_mean

SIDES: Mapping[str, str] = {"seed": "baseline"}
"""Sides of a run: its prompts, traces, cases and answers."""

SPLITS: Mapping[str, str] = {"val": "validation"}
"""Splits of a data set."""

SUMMARY: Mapping[str, str] = {"iterations": "rounds", "val_score": "validation_score"}
"""Keys of a summary, and of its rounds."""

KEYS: Mapping[str, str] = {"prompts.tuned": "prompts.tune", "search.attribution": "search.blame"}
"""Keys of a configuration."""

GONE_OF_MODELS = ("reuse_prefixes",)
"""Keys of a model that no longer exist, and changed no result."""

NO_CLUSTER = "Ray is no longer part of memtune: threads keep an endpoint busier; leave it out, results are the same"
"""What who names an executor is told."""

_THREADS: Mapping[str, Any] = {"kind": "threads", "address": None}
"""The section `executor` of a configuration that names no cluster, as runs wrote it."""

SETTINGS: Mapping[str, str] = {"prompts": "start", "no_attribution": "no_blame"}
"""Options of `memtune run`, as Python writes them."""


def current_side(side: str, *others: str) -> str:
    """The name now of a side of a run, or one of `others`.

    Raises:
        ConfigError: there is no such side.
    """
    current, names = SIDES.get(side, side), ("baseline", "champion", *others)
    if current not in names:
        raise ConfigError(f"{side!r} is no side of a run{did_you_mean(side, names)}; choose from {', '.join(names)}")
    return current


def first_folder(folder_of: Callable[[str], Path], name: str) -> Path:
    """The folder of a side: by its name now, or by an earlier one if only that is there."""
    folders = [folder_of(name), *(folder_of(earlier) for earlier, current in SIDES.items() if current == name)]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A mapping with the names now of its keys; anything else as it is, for a validator to judge."""
    return {names.get(name, name): item for name, item in value.items()} if isinstance(value, dict) else value


def by_current_side(value: Any) -> Any:
    """A mapping by side with the sides' names now."""
    return renamed(value, SIDES)


def current_split(split: Any) -> Any:
    """The name now of a split."""
    return SPLITS.get(split, split) if isinstance(split, str) else split


def current_summary(values: Any) -> Any:
    """A summary's values by their names now."""
    values = renamed(values, SUMMARY)
    if not isinstance(values, dict):
        return values
    of_splits = {key: renamed(values[key], SPLITS) for key in ("splits", "baseline", "champion") if key in values}
    rounds = values.get("rounds")
    of_rounds = {"rounds": [renamed(record, SUMMARY) for record in rounds]} if isinstance(rounds, list) else {}
    return {**values, **of_splits, **of_rounds}


def by_current_keys(params: Mapping[str, str], *, prefix: str = "") -> dict[str, str]:
    """Flat settings of a run with the keys' names now."""
    names = {f"{prefix}{earlier}": f"{prefix}{key}" for earlier, key in KEYS.items()}
    return {names.get(name, name): value for name, value in params.items()}


def with_current_keys(values: dict[str, Any], label: str, told: Callable[[str, str], None]) -> dict[str, Any]:
    """A configuration with the keys' names now; `told` hears of each earlier one.

    Raises:
        ConfigError: a key is there by both names, or one that is gone names what memtune no longer has.
    """
    if isinstance(executor := values.get("executor"), Mapping):
        if {**_THREADS, **executor} != _THREADS:
            raise ConfigError(f"{label}: executor: {NO_CLUSTER}")
        values = {key: value for key, value in values.items() if key != "executor"}
    for earlier, key in KEYS.items():
        section, _, name = earlier.partition(".")
        current = key.partition(".")[2]
        settings = values.get(section)
        if isinstance(settings, Mapping) and name in settings:
            if current in settings:
                raise ConfigError(f"{label}: {earlier}: is the earlier name of {key}; leave one of them out")
            told(earlier, key)
            values = {**values, section: {current if own == name else own: settings[own] for own in settings}}
    if isinstance(models := values.get("models"), Mapping):
        values = {**values, "models": {role: _without_gone(settings) for role, settings in models.items()}}
    return values


def _without_gone(settings: Any) -> Any:
    if not isinstance(settings, Mapping):
        return settings
    return {key: value for key, value in settings.items() if key not in GONE_OF_MODELS}
