"""From a configuration to the parts that it names: for a run, its dry run, and what evaluates or asks a model."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attribution.attributor import AttributorFactory, open_attributor
from attribution.judging.metrics import LLM_JUDGE, open_metric
from attribution.judging.words import METRICS
from attribution.survival.matching.matcher import WORDS, MatcherFactory, open_matcher
from experiments.running.tunable import check_settings, check_tuned, read_rewrites
from experiments.runs.config import RunConfig
from experiments.runs.config_file import anchored, load_config
from experiments.runs.fingerprint import fingerprint, read_fingerprint
from experiments.runs.folder import BY_HAND, PROMPTS, RunFolder, read_prompts
from experiments.runs.run_settings import check_secrets
from tracing.errors import ConfigError
from tracing.systems.prompts import Candidate, check_candidate, seed_candidate
from tracing.systems.protocol import ChecksItself, MemorySystem
from tracing.systems.registry import open_system
from tracing.systems.seeding import with_seeds

if TYPE_CHECKING:
    from experiments.data.loaders import Dataset
    from optimizer.cluster.ray_executor import RayExecutor
    from optimizer.evaluation.evaluator import Evaluator
    from optimizer.evaluation.executor import Executor
    from optimizer.evaluation.scores import Settings
    from optimizer.evaluation.variants import Variants
    from optimizer.objectives.objectives import ObjectiveFactory
    from optimizer.proposers.proposals import Proposal, ProposerFactory
    from optimizer.racing.studies import StudyServer
    from optimizer.search.optimizers import Optimizer
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
        ConfigError: the system's library is not installed; and as `open_access` and `open_executor`.
        WeightsError: as `open_access`.
    """
    system = ready_system(config)
    with open_access(config, home) as access, open_executor(config, system, access) as executor:
        yield evaluator_of(config, system, access, home, executor=executor)


def study_server(config: RunConfig) -> StudyServer | None:
    """The database that keeps the studies of the run, which can be reached; None if its own folder keeps them.

    Raises:
        ConfigError: it cannot be reached.
    """
    from optimizer.racing.studies import StudyServer

    if config.search.storage is None:
        return None
    server = StudyServer(config.search.storage)
    server.check()
    return server


def configured_system(config: RunConfig, settings: Mapping[str, Any] | None = None) -> MemorySystem:
    """The memory system of `config`, which starts from the prompts that it names.

    Args:
        settings: of the system, above its own.

    Raises:
        ConfigError: it cannot be opened, or a setting does not fit.
        RunError: a seed prompt is missing or cannot be read.
        ContractError: a seed prompt breaks its contract.
    """
    system = open_system(config.system, {**config.system_settings, **(settings or {})})
    start = config.prompts.start
    return system if start is None else with_seeds(system, read_prompts(start, system.prompts))


def config_of_run(config: RunConfig, resume: RunFolder | None) -> RunConfig:
    """The configuration with absolute paths; a resumed run keeps the prompts that it began with."""
    config = anchored(config, Path.cwd())
    if resume is None or config.prompts.start is None or not (resume.path / PROMPTS / "seed").is_dir():
        return config
    own = config.prompts.model_copy(update={"start": resume.path.absolute() / PROMPTS / "seed"})
    return config.model_copy(update={"prompts": own})


def ready_system(config: RunConfig) -> MemorySystem:
    """The memory system of `config`, once its metric can be opened too.

    Raises:
        ConfigError: a setting does not fit or lacks its secret, there is no such metric, or the library of the system
            or of the executor is not installed.
        RunError, ContractError: its seed prompts cannot be read, or break a contract.
    """
    check_secrets(config)
    system = configured_system(config)
    if config.metric != LLM_JUDGE:
        open_metric(config.metric)  # refused before anything starts, not with the first reply
    if isinstance(system, ChecksItself):
        system.require_library()
    if config.executor.kind == "ray":
        from optimizer.cluster.ray_executor import require_ray

        require_ray()
    return system


@contextmanager
def open_executor(config: RunConfig, system: MemorySystem, access: ModelAccess) -> Iterator[Executor | None]:
    """Where the system runs: the executor of `config`; None for the threads of `access`. Closed at the end.

    Raises:
        ConfigError: there is no such cluster, or what the system needs cannot be sent to a worker.
    """
    if config.executor.kind == "threads":
        yield None
        return
    from optimizer.cluster.ray_executor import RayExecutor
    from optimizer.cluster.worker import WorkerSetup

    setup = WorkerSetup.of(config.system, config.system_settings, config.modules, system)
    with RayExecutor(setup, config.executor.address, threads=access.threads.count) as executor:
        yield executor


def evaluator_of(
    config: RunConfig,
    system: MemorySystem,
    access: ModelAccess,
    home: Path,
    *,
    traces: Path | None = None,
    executor: Executor | None = None,
) -> Evaluator:
    """The evaluator of a system with the judge of `config`; memories are kept in the cache of `home`.

    Args:
        traces: folder that receives the trace of every evaluated conversation; None for none.
        executor: where the system runs; None for the threads of `access`.
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
        executor=executor,
    )


def variants_of(config: RunConfig, evaluator: Evaluator) -> Variants | None:
    """The system of `evaluator` under the settings that may be tuned; None if there are none."""
    from optimizer.evaluation.variants import Variants

    if not config.search.settings:
        return None

    def system_under(settings: Settings) -> tuple[MemorySystem, Executor | None]:
        system = configured_system(config, settings)
        return system, _executor_under(config, settings, system, evaluator.executor)

    return Variants(evaluator, config.search.settings, system_under)


def _executor_under(
    config: RunConfig, settings: Settings, system: MemorySystem, executor: Executor | None
) -> Executor | None:
    if config.executor.kind != "ray":
        return executor
    from optimizer.cluster.worker import WorkerSetup

    own = {**config.system_settings, **settings}
    return cast("RayExecutor", executor).of(WorkerSetup.of(config.system, own, config.modules, system))


@dataclass(frozen=True, slots=True)
class RunParts:
    """The parts that a configuration names, and the fingerprint of the run with them.

    `server` keeps the studies; None if the run's own folder does.
    """

    system: MemorySystem
    attributor: AttributorFactory
    matcher: MatcherFactory | None
    optimizer: Optimizer
    proposers: Sequence[ProposerFactory]
    objectives: Mapping[str, ObjectiveFactory]
    access: ModelAccess
    baseline: Candidate
    rewrites: tuple[Proposal, ...]
    fingerprint: Mapping[str, str]
    server: StudyServer | None


def open_parts(
    config: RunConfig,
    dataset: Dataset,
    home: Path,
    stack: contextlib.ExitStack,
    *,
    resume: RunFolder | None,
    by_hand: Path | None,
) -> RunParts:
    """Open everything that `config` names; no model is called and nothing but the cache of `home` is written.

    Args:
        stack: closes the models.
        resume: the run that is continued, whose embedding model is used.
        by_hand: file or folder of rewrites by hand; by default those that a resumed run began with.

    Raises:
        MemtuneError: a part does not exist, cannot be imported or does not fit.
    """
    from optimizer.objectives.objectives import open_objectives
    from optimizer.proposers.proposals import open_proposers
    from optimizer.search.optimizers import open_optimizer

    system, attributor = ready_system(config), open_attributor(config.attribution, matcher=config.matcher)
    matcher = None if config.matcher == WORDS else open_matcher(config.matcher)
    check_settings(config, system, partial(configured_system, config))
    objectives = open_objectives(config.search.objectives, system.prompts)
    optimizer, proposers = open_optimizer(config.optimizer), open_proposers(config.proposers)
    server = study_server(config)
    access = stack.enter_context(open_access(config, home))
    if by_hand is None and resume is not None and (resume.path / BY_HAND).is_dir():
        by_hand = resume.path / BY_HAND
    rewrites = read_rewrites(by_hand, system.prompts) if by_hand is not None else ()
    baseline = seed_candidate(system.prompts)
    check_candidate(system.prompts, baseline)
    config.prompts.limits().check(system.prompts)
    check_tuned(config, system.prompts, rewrites)
    if resume is not None:
        for settings in config.models.roles().values():
            settings.key()  # which the run's folder has not kept
        access = access.going_on_as(read_fingerprint(resume).get("models.embedding", ""))
    depends_on = fingerprint(config, system, dataset.splits, baseline, access.identities(), rewrites)
    return RunParts(
        system, attributor, matcher, optimizer, proposers, objectives, access, baseline, rewrites, depends_on, server
    )
