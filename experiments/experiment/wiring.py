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
from experiments.runs.config import RunConfig, load_config
from tracing.errors import ConfigError
from tracing.systems.protocol import MemorySystem
from tracing.systems.registry import open_system

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator
    from tracing.llm.access import ModelAccess

HOME_VARIABLE = "MEMTUNE_HOME"
DEFAULT_HOME = Path(".memtune")


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run works with."""

    system: MemorySystem
    access: ModelAccess
    evaluator: Evaluator


def home_folder(option: Path | None = None) -> Path:
    """Where runs, MLflow store and caches lie: `option`, else `$MEMTUNE_HOME`, else `.memtune` in the current folder.

    Raises:
        ConfigError: the folder cannot be made.
    """
    named = os.environ.get(HOME_VARIABLE)
    home = option or (Path(named).expanduser() if named else DEFAULT_HOME)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{home}: cannot be made ({error.strerror}); give --home a writable folder") from None
    return home.resolve()


@contextmanager
def open_access(config: RunConfig, home: Path, *, surely: bool = True) -> Iterator[ModelAccess]:
    """The models of `config`, with the cache of `home`; closed at the end.

    Args:
        surely: whether they will be asked, so that an embedded model that is not here is refused now.

    Raises:
        ConfigError: a setting does not fit.
        WeightsError: an embedded model is not on this machine.
    """
    from tracing.llm.access import ModelAccess
    from tracing.llm.serving.weights import locate

    roles = config.models.roles()
    for role, settings in roles.items():
        # Said before anything starts, not at the first call.
        if surely and settings.embedded and role != "embedding":
            locate(settings.model)
    with ModelAccess.open(roles, cache_dir=home / "cache", limits=config.budget.limits()) as access:
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
        calls: to the model at most.
        timeout: seconds to wait for a reply; then a failed call is tried only once more.
        surely: as of `open_access`.

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
def open_parts(config: RunConfig, home: Path) -> Iterator[Parts]:
    """The system, model access and evaluator of `config`; closed at the end.

    Raises:
        ConfigError: the system's library is not installed; and as `open_access`.
        WeightsError: as `open_access`.
    """
    from attribution.judging.llm_judge import LlmJudge
    from optimizer.evaluation.evaluator import Evaluator

    if config.metric != LLM_JUDGE:
        # Said before anything starts, not with the first reply.
        open_metric(config.metric)
    system = open_system(config.system, config.system_settings)
    require_library = getattr(system, "require_library", None)
    if require_library is not None:
        require_library()
    with open_access(config, home) as access:
        evaluator = Evaluator(system, access, config.metric, snapshots=home / "cache" / "memories")
        if config.metric == LLM_JUDGE:
            evaluator.metric, evaluator.model_judge = METRICS[0], LlmJudge(access.judge)
        yield Parts(system, access, evaluator)
