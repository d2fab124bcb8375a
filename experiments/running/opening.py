"""What a configuration names, opened: the same for a run and for its dry run."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attribution.attributor import AttributorFactory, open_attributor
from attribution.survival.matching.matcher import WORDS, MatcherFactory, open_matcher
from experiments.data.loaders import Dataset
from experiments.running.handwritten import handwritten
from experiments.running.settings_choice import check_settings
from experiments.running.tuned_prompts import check_tuned
from experiments.running.wiring import open_access, ready_system, study_server
from experiments.runs.config import RunConfig
from experiments.runs.fingerprint import fingerprint, read_fingerprint
from experiments.runs.folder import BY_HAND, RunFolder
from tracing.systems.prompts import Candidate, check_candidate, seed_candidate
from tracing.systems.protocol import MemorySystem

if TYPE_CHECKING:
    from optimizer.objectives.objectives import ObjectiveFactory
    from optimizer.proposers.proposals import Proposal, ProposerFactory
    from optimizer.racing.studies import StudyServer
    from optimizer.search.optimizers import Optimizer
    from tracing.llm.access import ModelAccess


@dataclass(frozen=True, slots=True)
class Opened:
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
    seed: Candidate
    rewrites: tuple[Proposal, ...]
    fingerprint: Mapping[str, str]
    server: StudyServer | None


def open_named(
    config: RunConfig,
    dataset: Dataset,
    home: Path,
    held: contextlib.ExitStack,
    *,
    resume: RunFolder | None,
    by_hand: Path | None,
) -> Opened:
    """Open everything that `config` names; no model is called and nothing but the cache of `home` is written.

    Args:
        held: closes the models.
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
    check_settings(config, system)
    objectives = open_objectives(config.search.objectives, system.prompts)
    optimizer, proposers = open_optimizer(config.optimizer), open_proposers(config.proposers)
    server = study_server(config)
    access = held.enter_context(open_access(config, home))
    if by_hand is None and resume is not None and (resume.path / BY_HAND).is_dir():
        by_hand = resume.path / BY_HAND
    rewrites = handwritten(by_hand, system.prompts) if by_hand is not None else ()
    seed = seed_candidate(system.prompts)
    check_candidate(system.prompts, seed)
    config.prompts.limits().check(system.prompts)
    check_tuned(config, system.prompts, rewrites)
    if resume is not None:
        for settings in config.models.roles().values():
            settings.key()  # which the run's folder has not kept
        access = access.going_on_as(read_fingerprint(resume).get("models.embedding", ""))
    depends_on = fingerprint(config, system, dataset.splits, seed, access.identities(), rewrites)
    return Opened(
        system, attributor, matcher, optimizer, proposers, objectives, access, seed, rewrites, depends_on, server
    )
