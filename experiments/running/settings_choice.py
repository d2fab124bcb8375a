"""Settings of the memory system that a run may tune (`search.settings`): checked at the start, opened when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from experiments.running.wiring import configured_system
from experiments.runs.config import RunConfig
from optimizer.search.optimizers import LOCAL_SEARCH, optimizers_of
from tracing.errors import ConfigError
from tracing.systems.description import describe
from tracing.systems.protocol import MemorySystem

if TYPE_CHECKING:
    from optimizer.cluster.ray_executor import RayExecutor
    from optimizer.evaluation.evaluator import Evaluator
    from optimizer.evaluation.executor import Executor
    from optimizer.evaluation.variants import Settings, Variants


def check_settings(config: RunConfig, system: MemorySystem) -> None:
    """Refuse settings that cannot be tuned.

    Args:
        system: that of `config`.

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
                other = _opened(config, {name: value})
                told = describe(other).settings
            except ConfigError as error:
                raise ConfigError(f"{key}: {str(error).removeprefix(f'system_settings.{name}: ')}") from None
            if name not in own or told.get(name) != value:
                raise ConfigError(
                    f"{key}: the memory system's `settings` do not say {value!r} when it is made with it, so what was "
                    "built under one value would be used under another; let them say it, or leave the setting out"
                )
            if set(other.prompts) != set(system.prompts):
                raise ConfigError(
                    f"{key}: with {value!r} the memory system has the prompts {', '.join(other.prompts)}, and in this "
                    f"run {', '.join(system.prompts)}; a run tunes one set of prompts, so choose among values with "
                    "the same, or give this one in system_settings"
                )
        if not isinstance(own[name], bool | int | float | str):
            raise ConfigError(
                f"{key}: the run's own value is {own[name]!r}; give it a number, text or boolean in system_settings"
            )
        if set(values) <= {own[name]}:
            raise ConfigError(f"{key}: nothing to choose from, since the run has {own[name]!r}; add another value")


def variants_of(config: RunConfig, evaluator: Evaluator) -> Variants | None:
    """The system of `evaluator` under the settings that may be tuned; None if there are none."""
    from optimizer.evaluation.variants import Variants

    if not config.search.settings:
        return None

    def opened(settings: Settings) -> tuple[MemorySystem, Executor | None]:
        system = _opened(config, settings)
        return system, _executor(config, settings, system, evaluator.executor)

    return Variants(evaluator, config.search.settings, opened)


def _opened(config: RunConfig, settings: Settings) -> MemorySystem:
    return configured_system(config, settings)


def _executor(
    config: RunConfig, settings: Settings, system: MemorySystem, executor: Executor | None
) -> Executor | None:
    if config.executor.kind != "ray":
        return executor
    from optimizer.cluster.worker_setup import WorkerSetup

    given = {**config.system_settings, **settings}
    return cast("RayExecutor", executor).of(WorkerSetup.of(config.system, given, config.modules, system))
