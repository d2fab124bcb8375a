"""Names that keys, options, words and files had before, which still work in this version: each with its name now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tracing.errors import ConfigError

SIDES: Mapping[str, str] = {"seed": "baseline"}
"""Sides of a run: its prompts, traces, cases and answers."""

CONTENDERS: Mapping[str, str] = {**SIDES, "no-attribution": "no-blame"}
"""Contenders of `memtune bench optimize`."""

KEYS: Mapping[str, str] = {"prompts.tuned": "prompts.tune", "search.attribution": "search.blame"}
"""Keys of a configuration."""

SETTINGS: Mapping[str, str] = {"prompts": "start", "no_attribution": "no_blame"}
"""Options of `memtune run`, as Python writes them."""


def current_side(side: str) -> str:
    """The name now of a side."""
    return SIDES.get(side, side)


def current_contender(name: str) -> str:
    """The name now of a contender."""
    return CONTENDERS.get(name, name)


def first_folder(folder_of: Callable[[str], Path], name: str) -> Path:
    """The folder of a side or a contender: by its name now, or by an earlier one if only that is there."""
    folders = [folder_of(name), *(folder_of(earlier) for earlier, current in CONTENDERS.items() if current == name)]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def by_current_side(value: Any) -> Any:
    """A mapping by side with the sides' names now; anything else as it is, for a validator to judge."""
    return {current_side(name): item for name, item in value.items()} if isinstance(value, dict) else value


def by_current_keys(params: Mapping[str, str], *, prefix: str = "") -> dict[str, str]:
    """Flat settings of a run with the keys' names now."""
    names = {f"{prefix}{earlier}": f"{prefix}{key}" for earlier, key in KEYS.items()}
    return {names.get(name, name): value for name, value in params.items()}


def with_current_keys(values: dict[str, Any], label: str, told: Callable[[str, str], None]) -> dict[str, Any]:
    """A configuration with the keys' names now; `told` hears of each earlier one.

    Raises:
        ConfigError: a key is there by both names.
    """
    for earlier, key in KEYS.items():
        section, _, name = earlier.partition(".")
        current = key.partition(".")[2]
        settings = values.get(section)
        if isinstance(settings, Mapping) and name in settings:
            if current in settings:
                raise ConfigError(f"{label}: {earlier}: is the earlier name of {key}; leave one of them out")
            told(earlier, key)
            values = {**values, section: {current if own == name else own: settings[own] for own in settings}}
    return values
