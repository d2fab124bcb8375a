"""From a configuration to the parts of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attribution.judging.metrics import LLM_JUDGE, open_metric
from attribution.judging.words import METRICS
from experiments.runs.config import RunConfig
from experiments.runs.config_file import load_config
from tracing.errors import ConfigError
from tracing.systems.protocol import ChecksItself, MemorySystem
from tracing.systems.registry import open_system

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator
    from tracing.llm.access import ModelAccess

HOME_VARIABLE = "MEMTUNE_HOME"
DEFAULT_HOME = Path(".memtune")


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a run works with."""

    system: MemorySystem
    access: ModelAccess
    evaluator: Evaluator


def home_path(option: Path | None = None) -> Path:
    """The folder of runs, MLflow store and caches: `option`, else `$MEMTUNE_HOME`, else `.memtune` here."""
    named = os.environ.get(HOME_VARIABLE)
    return (option or (Path(named).expanduser() if named else DEFAULT_HOME)).resolve()


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
    named = model or RunConfig().models.task.model
    asked: dict[str, object] = {"models.task.model": named, "models.task.base_url": base_url, "budget.calls": calls}
    if timeout is not None:
        asked |= {"models.task.timeout_s": timeout, "models.task.retries": 1}
    with open_access(load_config(None, overrides=asked), home, surely=surely) as access:
        yield access


@contextmanager
def open_parts(config: RunConfig, home: Path) -> Iterator[RunParts]:
    """The system, the model access and the evaluator of `config`; closed at the end.

    Raises:
        ConfigError: the system's library is not installed; and as `open_access`.
        WeightsError: as `open_access`.
    """
    system = ready_system(config)
    with open_access(config, home) as access:
        yield RunParts(system, access, evaluator_of(config, system, access, home))


def ready_system(config: RunConfig) -> MemorySystem:
    """The memory system of `config`, once its metric can be opened too.

    Raises:
        ConfigError: a setting does not fit, there is no such metric, or the system's library is not installed.
    """
    system = open_system(config.system, config.system_settings)
    if config.metric != LLM_JUDGE:
        open_metric(config.metric)  # refused before anything starts, not with the first reply
    if isinstance(system, ChecksItself):
        system.require_library()
    return system


def evaluator_of(
    config: RunConfig, system: MemorySystem, access: ModelAccess, home: Path, *, traces: Path | None = None
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
