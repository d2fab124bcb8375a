"""From a configuration to single parts that it names: home folder, models, memory system, evaluator."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attribution.judging.metrics import LLM_JUDGE, open_metric
from attribution.judging.words import METRICS
from experiments.runs.config import RunConfig
from experiments.runs.config_file import load_config
from experiments.runs.folder import read_prompts
from experiments.runs.run_settings import check_secrets
from optimizer.search.optimizers import LOCAL_SEARCH, optimizers_of
from tracing.errors import ConfigError
from tracing.llm.accounting.price import unknown_prices
from tracing.systems.baseline import with_baseline
from tracing.systems.description import describe
from tracing.systems.protocol import ChecksItself, HasRanges, MemorySystem
from tracing.systems.registry import open_system

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator
    from optimizer.evaluation.scores import Setting, Settings
    from optimizer.evaluation.variants import Variants
    from tracing.llm.access import ModelAccess

HOME_VARIABLE = "MEMTUNE_HOME"
DEFAULT_HOME = Path(".memtune")


def home_path(option: Path | None = None) -> Path:
    """The folder of runs, MLflow store and caches: `option`, else `$MEMTUNE_HOME`, else `.memtune` here."""
    variable = os.environ.get(HOME_VARIABLE)
    return (option or (Path(variable).expanduser() if variable else DEFAULT_HOME)).resolve()


def home_folder(option: Path | None = None) -> Path:
    """The same folder as `home_path`, made where it does not exist.

    Raises:
        ConfigError: the folder cannot be made.
    """
    home = home_path(option)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{home}: cannot be made ({error.strerror}); give --home a writable folder") from None
    return home


@contextmanager
def open_access(config: RunConfig, home: Path, *, surely: bool = True) -> Iterator[ModelAccess]:
    """The models of `config`, with the cache of `home`; closed at the end.

    Args:
        surely: whether they will certainly be called, so that a missing embedded model is refused now.

    Raises:
        ConfigError: a setting is invalid.
        WeightsError: an embedded model is not on this machine.
    """
    from tracing.llm.access import ModelAccess
    from tracing.llm.serving.weights import locate

    roles = config.models.roles()
    for role, settings in roles.items():
        # Reported before anything starts, not at the first call.
        if surely and settings.embedded and role != "embedding":
            locate(settings.model)
    with ModelAccess.open(
        roles, cache_dir=home / "cache", limits=config.budget.limits(), concurrency=config.concurrency
    ) as access:
        yield access


def check_endpoints(config: RunConfig, access: ModelAccess, *, when_needed: bool = False) -> None:
    """Learn from a small request for each role what its endpoint takes; raises as `ModelAccess.check`."""
    access.check(when_needed=when_needed, alternatives=asked_alternatives(config))


def asked_alternatives(config: RunConfig) -> int:
    """How many first tokens the judge is asked for with their log-probabilities; 0 if no model judges."""
    from attribution.judging.llm_judge import ALTERNATIVES

    return ALTERNATIVES if config.metric == LLM_JUDGE else 0


@contextmanager
def model_access(
    home: Path,
    *,
    model: str | None,
    base_url: str | None,
    calls: int | None,
    timeout: float | None = None,
    surely: bool = True,
) -> Iterator[ModelAccess]:
    """One model to ask, the embedded default where none is named; closed at the end.

    Args:
        home: whose cache is used.
        model, base_url: as in a configuration.
        calls: most calls to the model.
        timeout: seconds to wait for a reply; if given, a failed call is retried only once.
        surely: as for `open_access`.

    Raises:
        ConfigError, WeightsError: as `open_access`.
    """
    name = model or RunConfig().models.task.model
    overrides: dict[str, object] = {"models.task.model": name, "models.task.base_url": base_url, "budget.calls": calls}
    if timeout is not None:
        overrides |= {"models.task.timeout_s": timeout, "models.task.retries": 1}
    with open_access(load_config(None, overrides=overrides), home, surely=surely) as access:
        yield access


@contextmanager
def open_evaluator(config: RunConfig, home: Path) -> Iterator[Evaluator]:
    """The evaluator of `config`, with its system and models; closed at the end.

    Raises:
        ConfigError: the system's library is not installed; and as `open_access`.
        WeightsError: as `open_access`.
    """
    system = ready_system(config)
    with open_access(config, home) as access:
        yield evaluator_of(config, system, access, home)


def configured_system(config: RunConfig, settings: Mapping[str, Any] | None = None) -> MemorySystem:
    """The memory system of `config`, which starts from the prompts that it names.

    Args:
        settings: of the system, above its own.

    Raises:
        ConfigError: it cannot be opened, or a setting does not fit.
        RunError: a baseline prompt is missing or cannot be read.
        ContractError: a baseline prompt breaks its contract.
    """
    system = open_system(config.system, {**config.system_settings, **(settings or {})})
    start = config.prompts.start
    return system if start is None else with_baseline(system, read_prompts(start, system.prompts))


def ready_system(config: RunConfig) -> MemorySystem:
    """The memory system of `config`, once its metric can be opened too.

    Raises:
        ConfigError: a setting does not fit or lacks its secret, there is no such metric, or the library of the system
            is not installed.
        RunError, ContractError: its baseline prompts cannot be read, or break a contract.
    """
    check_secrets(config)
    system = configured_system(config)
    if config.metric != LLM_JUDGE:
        open_metric(config.metric)  # refused before anything starts, not with the first reply
    if isinstance(system, ChecksItself):
        system.require_library()
    return system


def evaluator_of(
    config: RunConfig,
    system: MemorySystem,
    access: ModelAccess,
    home: Path,
    *,
    traces: Path | None = None,
) -> Evaluator:
    """The evaluator of a system with the judge of `config`; memories are kept in the cache of `home`.

    Args:
        traces: folder that receives the trace of every evaluated conversation; None for none.
    """
    from attribution.judging.llm_judge import LlmJudge
    from optimizer.evaluation.evaluator import Evaluator

    judged_by_model = config.metric == LLM_JUDGE
    return Evaluator(
        system,
        access,
        METRICS[0] if judged_by_model else config.metric,
        snapshots=home / "cache" / "memories",
        traces=traces,
        model_judge=LlmJudge(access.judge) if judged_by_model else None,
    )


def variants_of(config: RunConfig, evaluator: Evaluator) -> Variants | None:
    """The system of `evaluator` under the settings that may be tuned; None if there are none."""
    from optimizer.evaluation.variants import Variants

    choices = choices_of(config, evaluator.system)
    return Variants(evaluator, choices, partial(configured_system, config)) if choices else None


def choices_of(config: RunConfig, system: MemorySystem) -> Mapping[str, Sequence[Setting]]:
    """Settings that may be tuned, with the values to choose from; for `auto` those of the system's own ranges that fit.

    For `auto` there are none where the optimizer tunes prompts alone.
    """
    wanted = config.search.settings
    if not isinstance(wanted, str):
        return wanted
    choices: dict[str, list[Setting]] = {}
    for name, value, misfit in _ranged(config, system):
        if misfit is None:
            choices.setdefault(name, []).append(value)
    return choices


def left_out(config: RunConfig, system: MemorySystem) -> list[str]:
    """The values of the system's own ranges that `auto` does not try since they do not fit, with the reasons."""
    if not isinstance(config.search.settings, str):
        return []
    return [f"{name} {value} ({misfit})" for name, value, misfit in _ranged(config, system) if misfit is not None]


def _ranged(config: RunConfig, system: MemorySystem) -> Iterator[tuple[str, Setting, str | None]]:
    """Other values than the run's of the system's ranges, and why each does not fit; None if it does."""
    if LOCAL_SEARCH not in optimizers_of(config.optimizer) or not isinstance(system, HasRanges):
        return
    own = describe(system).settings
    for name, values in system.ranges.items():
        for value in values:
            if value != own.get(name):
                yield name, value, _misfit(config, system, {name: value}, own.get(name, value))


def _misfit(config: RunConfig, system: MemorySystem, settings: Settings, own: object) -> str | None:
    if not isinstance(own, bool | int | float | str):
        return f"the run's own value is {own!r}; give it one in system_settings"
    try:
        prompts = set(configured_system(config, settings).prompts)
    except ConfigError as error:
        return str(error)
    return None if prompts == set(system.prompts) else "it has other prompts then"


def unpriced(config: RunConfig) -> str | None:
    """Which models have no known price, and what to set; None if all have one."""
    missing = {
        role: unknown_prices(settings, writes=role != "embedding") for role, settings in config.models.roles().items()
    }
    unknown = [role for role, names in missing.items() if names]
    if not unknown:
        return None
    model = getattr(config.models, unknown[0])
    keys = ", ".join(f"models.{role}.{' and '.join(missing[role])}" for role in unknown)
    return f"The price of {model.model} at {model.base_url} is unknown: set {keys}"
