"""What a run may tune: rewrites by hand, and the prompts and settings that it may change, checked at the start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from optimizer.proposers.rewrites import HAND, Rewrite
from optimizer.search.optimizers import LOCAL_SEARCH, optimizers_of
from tracing.errors import ConfigError, ContractError, RunError
from tracing.suggestions import unknown_names
from tracing.systems.description import describe
from tracing.systems.prompts import PromptSpec

if TYPE_CHECKING:
    from experiments.runs.config import RunConfig
    from optimizer.evaluation.scores import Settings
    from tracing.systems.protocol import MemorySystem

_WRITTEN = "written by hand: "


def read_rewrites(path: Path, specs: Mapping[str, PromptSpec]) -> tuple[Rewrite, ...]:
    """The rewrites in a file, or in all `.txt` files under a folder; `NAME.txt` and `NAME.anything.txt` are for NAME.

    A text equal to the system's own is left out.

    Raises:
        RunError: there is no rewrite, or a file is named for no prompt.
        ContractError: a text breaks its prompt's contract; nothing was spent on it.
    """
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    rewrites: dict[tuple[str, str], Rewrite] = {}
    for file in files:
        name = file.name.partition(".")[0]
        if name not in specs:
            suggestion = unknown_names([name], specs)
            raise RunError(f"{file}: no prompt is called {suggestion}; name the file for one of {', '.join(specs)}")
        try:
            text = file.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise RunError(f"{file}: cannot be read ({reason}); give --rewrites a text file or a folder") from None
        problems = specs[name].contract.violations(text)
        if problems:
            raise ContractError(f"{file}: {'; '.join(problems)}")
        if text != specs[name].text:
            rewrites.setdefault((name, text), Rewrite(name, text, HAND, f"{_WRITTEN}{file.name}"))
    if not rewrites:
        raise RunError(f"{path}: holds no rewrite (NAME.txt); give --rewrites a text file or a folder")
    return tuple(rewrites.values())


def rewrite_files(rewrites: Sequence[Rewrite]) -> dict[str, str]:
    """Paths and texts by which `read_rewrites` finds these rewrites again, in this order."""
    return {f"{n:04}/{rewrite.reason.removeprefix(_WRITTEN)}": rewrite.text for n, rewrite in enumerate(rewrites)}


def check_tuned(config: RunConfig, prompts: Collection[str], rewrites: Sequence[Rewrite]) -> None:
    """Refuse a choice of prompts (`prompts.tuned`) that leaves nothing to do, or not what else was asked for.

    Args:
        prompts: names of those of the memory system.
        rewrites: by hand.

    Raises:
        ConfigError: there is no such prompt, a rewrite is of another one, or nothing at all may be tuned.
    """
    tuned = config.prompts.tuned
    if tuned is None:
        return
    if unknown := [name for name in tuned if name not in prompts]:
        raise ConfigError(
            f"prompts.tuned: there is no prompt {unknown_names(unknown, prompts)}; choose from {', '.join(prompts)}"
        )
    for rewrite in rewrites:
        if rewrite.prompt not in tuned:
            raise ConfigError(
                f"prompts.tuned: leaves out {rewrite.prompt!r}, of which --rewrites gives a text; add it, or take that "
                "file away"
            )
    if tuned or config.rounds == 0:
        return
    if not config.search.settings or config.optimizer != LOCAL_SEARCH:
        raise ConfigError(
            "prompts.tuned: no prompt may be rewritten, so there is nothing to tune; name some, or give "
            f"search.settings and let {LOCAL_SEARCH} alone choose among them"
        )


def check_settings(config: RunConfig, system: MemorySystem, system_under: Callable[[Settings], MemorySystem]) -> None:
    """Refuse settings that cannot be tuned (`search.settings`).

    Args:
        system: that of `config`.
        system_under: opens it with other values of its settings.

    Raises:
        ConfigError: the optimizer does not tune settings, the system does not know one or refuses a value, its
            description does not tell the values apart, it has other prompts under a value, or there is nothing to
            choose from.
    """
    if config.search.settings and LOCAL_SEARCH not in optimizers_of(config.optimizer):
        raise ConfigError(
            f"search.settings: {config.optimizer} tunes prompts alone; leave them out, or add "
            f"--optimizer {LOCAL_SEARCH}"
        )
    own = describe(system).settings
    for name, values in config.search.settings.items():
        key = f"search.settings.{name}"
        for value in values:
            try:
                variant = system_under({name: value})
                described = describe(variant).settings
            except ConfigError as error:
                raise ConfigError(f"{key}: {str(error).removeprefix(f'system_settings.{name}: ')}") from None
            if name not in own or described.get(name) != value:
                raise ConfigError(
                    f"{key}: the memory system's `settings` do not say {value!r} when it is made with it, so what was "
                    "built under one value would be used under another; let them say it, or leave the setting out"
                )
            if set(variant.prompts) != set(system.prompts):
                raise ConfigError(
                    f"{key}: with {value!r} the memory system has the prompts {', '.join(variant.prompts)}, and in "
                    f"this run {', '.join(system.prompts)}; a run tunes one set of prompts, so choose among values "
                    "with the same, or give this one in system_settings"
                )
        if not isinstance(own[name], bool | int | float | str):
            raise ConfigError(
                f"{key}: the run's own value is {own[name]!r}; give it a number, text or boolean in system_settings"
            )
        if set(values) <= {own[name]}:
            raise ConfigError(f"{key}: nothing to choose from, since the run has {own[name]!r}; add another value")
