"""The contenders of the comparison: what searches, and with what switched off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.runs.folder import BASELINE
from optimizer.search.optimizers import LOCAL_SEARCH, OPTIMIZERS
from tracing.errors import ConfigError
from tracing.plugins import is_object, look_in

OURS = LOCAL_SEARCH


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
