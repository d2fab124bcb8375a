"""The contenders of the comparison: what searches, and with what switched off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.runs.folder import BASELINE
from optimizer.search.optimizers import LOCAL_SEARCH, OPTIMIZERS
from tracing.errors import ConfigError
from tracing.plugins import is_object, look_in

OURS = LOCAL_SEARCH

EARLIER_NAMES: Mapping[str, str] = {"seed": BASELINE, "no-attribution": "no-blame"}
"""Contenders by the names that they have in files and folders of earlier versions."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to search, by its name on the command line; without an optimizer, the baseline prompts as they are."""

    name: str
    optimizer: str | None
    blame: bool = True
    local_objectives: bool = True


_BASELINE = Contender(BASELINE, None)
_BUILT_IN = {
    contender.name: contender
    for contender in (
        _BASELINE,
        Contender("random", "random"),
        Contender("reference", "reference"),
        Contender("gepa", "gepa"),
        Contender("miprov2", "miprov2"),
        Contender(OURS, OURS),
        Contender("no-blame", OURS, blame=False),
        Contender("no-local-objectives", OURS, local_objectives=False),
    )
}

DEFAULT = tuple(_BUILT_IN)


def current_contender(name: str) -> str:
    """The name now of a contender."""
    return EARLIER_NAMES.get(name, name)


def contender_folder(folder_of: Callable[[str], Path], name: str) -> Path:
    """The folder of a contender: by its name now, or by an earlier one if only that is there."""
    folders = [folder_of(name), *(folder_of(earlier) for earlier, current in EARLIER_NAMES.items() if current == name)]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def contenders_of(names: Sequence[str]) -> tuple[Contender, ...]:
    """The contenders of these names, each once; the baseline comes first, since the others start from its replies."""
    contenders = {BASELINE: _BASELINE}
    for name in names:
        if name not in _BUILT_IN:
            if is_object(name):
                look_in(Path.cwd())
            try:
                OPTIMIZERS.check(name)
            except ConfigError as error:
                raise ConfigError(f"--optimizer: {error}; or {', '.join(_BUILT_IN)}") from None
        contenders[name] = _BUILT_IN.get(name) or Contender(name, name)
    return tuple(contenders.values())
