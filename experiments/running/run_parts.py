"""The parts of one run, opened and checked before its first call, and what of the memory system it may tune."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attribution.attributor import AttributorFactory, open_attributor
from attribution.survival.matching.matcher import WORDS, MatcherFactory, open_matcher
from experiments.mlflow_tracking.outbox import run_key
from experiments.mlflow_tracking.store import check_store
from experiments.running.parts import choices_of, configured_system, open_access, ready_system, unpriced
from experiments.runs.config_file import anchored, with_own_start
from experiments.runs.fingerprint import check_fingerprint, fingerprint, read_fingerprint
from experiments.runs.folder import BY_HAND, LEDGER, LOCK, STUDY, RunFolder
from experiments.runs.lock import locked
from optimizer.proposers.rewrites import HAND, Rewrite, open_proposers
from optimizer.racing.study_storage import StudyJournal, StudyServer
from optimizer.search.optimizers import LOCAL_SEARCH, open_optimizer, optimizers_of, refuse_rewrites_by_hand
from optimizer.tuning.results import LoopSettings
from tracing.errors import ConfigError, ContractError, RunError
from tracing.files.opening import read_text
from tracing.llm.accounting.ledger import Ledger
from tracing.suggestions import unknown_names
from tracing.systems.description import describe
from tracing.systems.prompts import Candidate, PromptSpec, baseline_candidate, check_candidate

if TYPE_CHECKING:
    from experiments.data.loaders import Dataset
    from experiments.runs.config import RunConfig
    from optimizer.objectives.objectives import ObjectiveFactory
    from optimizer.proposers.rewrites import ProposerFactory
    from optimizer.racing.study_storage import Studies
    from optimizer.search.optimizers import Optimizer
    from optimizer.tuning.round import Approve, RoundRecord
    from tracing.llm.access import ModelAccess
    from tracing.systems.protocol import MemorySystem

_WRITTEN = "written by hand: "

_OTHER_CALLS = ("judge", "reflect", "matcher", "update_memory")
"""Operations that ask a model and that no memory system lists; Mem0 decides on all facts in the last of them."""


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
    rewrites: tuple[Rewrite, ...]
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

    system, attributor = ready_system(config), open_attributor(config.attribution, matcher=config.matcher)
    matcher = None if config.matcher == WORDS else open_matcher(config.matcher)
    if config.goal == "cheaper" and config.optimizer != LOCAL_SEARCH:
        raise ConfigError(
            f"goal: {config.optimizer} seeks better scores; fewer tokens are sought by {LOCAL_SEARCH} alone: leave out "
            "optimizer"
        )
    if config.goal == "better" and config.margin != type(config).model_fields["margin"].default:
        raise ConfigError(
            "margin: only a run for fewer tokens has one; give goal: cheaper (--goal cheaper), or leave it out"
        )
    check_settings(config, system)
    unknown = unpriced(config) if config.budget.money is not None else None
    if unknown is not None:
        raise ConfigError(f"budget.money cannot be kept. {unknown}")
    check_reply_limits(config, system)
    objectives = open_objectives(config.search.objectives, system.prompts)
    optimizer, proposers = open_optimizer(config.optimizer), open_proposers(config.proposers)
    server = study_server(config)
    access = stack.enter_context(open_access(config, home))
    if by_hand is None and resume is not None and (resume.path / BY_HAND).is_dir():
        by_hand = resume.path / BY_HAND
    baseline, limits = baseline_candidate(system.prompts), config.prompts.limits()
    check_candidate(system.prompts, baseline)
    limits.check(system.prompts)
    rewrites: tuple[Rewrite, ...] = ()
    if by_hand is not None:
        refuse_rewrites_by_hand(config.optimizer)
        rewrites = read_rewrites(by_hand, limits.applied(system.prompts, dataset.splits.train, access.keys))
    check_tuned(config, system.prompts, rewrites, choices_of(config, system))
    if resume is not None:
        _ = access.keys  # which the run's folder has not kept
        access = access.going_on_as(read_fingerprint(resume).get("models.embedding", ""))
    depends_on = fingerprint(config, system, dataset.splits, baseline, access.identities(), rewrites)
    return RunParts(
        system, attributor, matcher, optimizer, proposers, objectives, access, baseline, rewrites, depends_on, server
    )


def config_of_run(config: RunConfig, resume: RunFolder | None) -> RunConfig:
    """The configuration with absolute paths; a resumed run keeps the prompts that it began with."""
    config = anchored(config, Path.cwd())
    return config if resume is None else with_own_start(config, resume.path)


def loop_settings(
    config: RunConfig, parts: RunParts, folder: RunFolder, approve: Approve | None, earlier: Sequence[RoundRecord]
) -> LoopSettings:
    """How the run in `folder` searches; `earlier` are the rounds that it had made before it was resumed."""
    if parts.server is None:
        studies: Studies = StudyJournal(folder.path / STUDY)
    else:
        # Two runs of one second, or with the same --out on two machines, have the same id.
        studies = parts.server.studies(f"{folder.id}-{(run_key(folder) or '')[:8]}")
    return LoopSettings(
        config.planned_rounds,
        config.proposals,
        config.seed,
        parts.rewrites,
        approve,
        limits=config.prompts.limits(),
        tune=config.prompts.tune,
        selector=config.search.selector,
        blame=config.search.blame,
        local_objectives=config.search.local_objectives,
        objectives=parts.objectives,
        matcher=parts.matcher,
        studies=studies,
        calls=config.search.calls,
        open_ended=config.rounds is None,
        made={record.n: record.last for record in earlier},
        margin=config.margin if config.goal == "cheaper" else None,
    )


def check_run(
    config: RunConfig,
    dataset: Dataset,
    home: Path,
    *,
    out: Path | None = None,
    resume: RunFolder | None = None,
    by_hand: Path | None = None,
) -> None:
    """Refuse what `run_experiment` would refuse before its first call; the arguments are the same.

    Raises:
        MemtuneError: as `run_experiment`.
    """
    config = config_of_run(config, resume)
    with contextlib.ExitStack() as stack:
        # A cache that does not exist must not be created.
        has_cache = (home / "cache").exists()
        cache_home = home if has_cache else Path(stack.enter_context(tempfile.TemporaryDirectory()))
        parts = open_parts(config, dataset, cache_home, stack, resume=resume, by_hand=by_hand)
        if resume is None:
            _check_place(home, "--home")
            if out is not None:
                _check_place(out, "--out")
                if out.is_dir() and any(out.iterdir()):
                    raise RunError(f"{out}: the folder is not empty; give --out a new one")
        else:
            stack.enter_context(locked(resume.path / LOCK))
            check_fingerprint(resume, parts.fingerprint)
            stack.enter_context(contextlib.closing(Ledger(resume.path / LEDGER, cache=cache_home / "cache")))
        check_store(config.tracking.uri, config.tracking.experiment, home)


def _check_place(folder: Path, option: str) -> None:
    """Refuse a path that is not a folder, or that cannot be made or written to."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ConfigError(f"{there}: is not a folder; give {option} another one")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"{there}: cannot be written to; give {option} a writable folder")


def study_server(config: RunConfig) -> StudyServer | None:
    """The database that keeps the studies of the run, which can be reached; None if its own folder keeps them.

    Raises:
        ConfigError: it cannot be reached.
    """
    if config.search.storage is None:
        return None
    server = StudyServer(config.search.storage)
    server.check()
    return server


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
        named = [name for name in specs if file.name.startswith(f"{name}.")]
        name = max(named, key=len, default=file.name.partition(".")[0])
        if not named:
            suggestion = unknown_names([name], specs)
            raise RunError(f"{file}: no prompt is called {suggestion}; name the file for one of {', '.join(specs)}")
        text = read_text(file, "give --rewrites a text file or a folder")
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


def check_tuned(
    config: RunConfig, prompts: Collection[str], rewrites: Sequence[Rewrite], settings: Collection[str]
) -> None:
    """Refuse a choice of prompts (`prompts.tune`) that leaves nothing to do, or not what else was asked for.

    Args:
        prompts: names of those of the memory system.
        rewrites: by hand.
        settings: names of those that may be tuned.

    Raises:
        ConfigError: there is no such prompt, a rewrite is of another one, or nothing at all may be tuned.
    """
    tuned = config.prompts.tune
    if tuned is None:
        return
    if unknown := [name for name in tuned if name not in prompts]:
        raise ConfigError(
            f"prompts.tune: there is no prompt {unknown_names(unknown, prompts)}; choose from {', '.join(prompts)}"
        )
    for rewrite in rewrites:
        if rewrite.prompt not in tuned:
            raise ConfigError(
                f"prompts.tune: leaves out {rewrite.prompt!r}, of which --rewrites gives a text; add it, or take that "
                "file away"
            )
    if tuned or config.rounds == 0:
        return
    if not settings or config.optimizer != LOCAL_SEARCH:
        raise ConfigError(
            "prompts.tune: no prompt may be rewritten, so there is nothing to tune; name some, or give "
            f"search.settings and let {LOCAL_SEARCH} alone choose among them"
        )


def check_reply_limits(config: RunConfig, system: MemorySystem) -> None:
    """Refuse limits of replies by operation (`models.ROLE.max_tokens`) of operations that ask no model.

    Raises:
        ConfigError: the system has no such operation, and neither judging, rewriting nor attributing has.
    """
    operations = [operation.name for operation in system.operations] + [*_OTHER_CALLS]
    for role, settings in config.models.roles().items():
        limits = settings.max_tokens if isinstance(settings.max_tokens, dict) else {}
        if unknown := [name for name in limits if name not in operations]:
            raise ConfigError(
                f"models.{role}.max_tokens: there is no operation {unknown_names(unknown, operations)}; choose "
                f"from {', '.join(operations)}"
            )


def check_settings(config: RunConfig, system: MemorySystem) -> None:
    """Refuse settings that cannot be tuned (`search.settings`).

    Args:
        system: that of `config`.

    Raises:
        ConfigError: the optimizer does not tune settings, the system does not know one or refuses a value, its
            description does not tell the values apart, it has other prompts under a value, or there is nothing to
            choose from.
    """
    wanted = config.search.settings
    if wanted and not isinstance(wanted, str) and LOCAL_SEARCH not in optimizers_of(config.optimizer):
        raise ConfigError(
            f"search.settings: {config.optimizer} tunes prompts alone; leave them out, or add "
            f"--optimizer {LOCAL_SEARCH}"
        )
    own = describe(system).settings
    for name, values in choices_of(config, system).items():
        key = f"search.settings.{name}"
        for value in values:
            try:
                variant = configured_system(config, {name: value})
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
