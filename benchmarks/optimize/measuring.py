"""Optimizers at equal budgets of model calls, over several seeds and memory systems.

Every search may make the same number of calls, and is charged for each that it needs: a run has a cache of its own. It
begins as a copy of that of the baseline prompts, whose baselines and test are made once for each system and charged to
nobody; so is the test of each champion. The search alone sees the limit (`search.calls`), so that the test always
follows. Rounds are many, so that the calls end a search, unless it has nothing left to try.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from benchmarks.optimize.contenders import Contender, contender_folder
from benchmarks.optimize.figures import ContenderRun, OptimizeFigures, compared
from benchmarks.optimize.one_run import RunPlace, measure_run
from benchmarks.phases import Phases
from experiments.bench.attribution import Progress
from experiments.data.loaders import Dataset
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.config import BudgetSettings, RunConfig
from experiments.runs.earlier_names import by_current_keys
from experiments.runs.fingerprint import differing
from experiments.runs.folder import BASELINE, LOCK, RunFolder
from experiments.runs.lock import HeldError, locked
from experiments.runs.run_settings import lasting_params
from optimizer.evaluation.file_names import file_name
from optimizer.evaluation.memories import digest
from optimizer.search.optimizers import CLOSED_LOOP
from tracing.errors import ConfigError, RunError
from tracing.formats import read_stamped, stamped

SYSTEMS = ("fact-memory", "rag")
SETTINGS = "settings.json"

_PER_RUN = {"system", "optimizer", "seed", "rounds", "search.calls"}
_PATIENCE_S = 60.0
"""Longest wait for another program that compares its settings with the folder's."""

_LOOK_S = 1.0
"""Time between two looks at whether another program has finished the baseline prompts."""

_READER: TypeAdapter[Mapping[str, str]] = TypeAdapter(dict[str, str])

_Run = tuple[str, Contender, int]
"""System, contender and seed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared, with how many `calls` and `rounds` a search.

    `config` is that of every run, but for what a contender, a system and a seed decide; its system settings are for its
    own system. The first contender are the baseline prompts, which need a run of one seed only.
    """

    config: RunConfig
    dataset: Dataset
    systems: tuple[str, ...]
    contenders: tuple[Contender, ...]
    seeds: tuple[int, ...]
    calls: int
    rounds: int

    def runs(self) -> Iterator[_Run]:
        """System, contender and seed of each run, seed by seed, so that all contenders are compared soon."""
        for seed in self.seeds:
            for system in self.systems:
                for contender in self.contenders:
                    if contender.optimizer is not None or seed == self.seeds[0]:
                        yield system, contender, seed


def measure_optimizers(
    plan: Plan, folder: Path, *, progress: Progress, finished: Callable[[OptimizeFigures], None]
) -> OptimizeFigures:
    """Make every run that is not finished yet, and compare them.

    Several programs may do so in one folder at once: each run is made by one of them. Of a finished run only its
    `figures.json` is needed, beside the folder's `settings.json`, to go on elsewhere.

    Systems, contenders and seeds may differ from call to call; finished runs are kept. `finished` is called with the
    figures so far at the start and after each run. The figures lack the runs that other programs are still at.

    Raises:
        ConfigError: a budget of the configuration would end runs; or the folder has runs with other settings.
        RunError: a file in the folder is damaged.
        MemtuneError: as `run_experiment`; called again, it goes on.
    """
    if plan.config.budget != BudgetSettings():
        raise ConfigError("budget: would end runs before their test; leave it out, and limit the searches by --calls")
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / LOCK, wait_s=_PATIENCE_S):
        _check_settings(plan, folder)
    places = {run: _place(folder, *run) for run in plan.runs()}
    finished_runs = _finished(places)
    finished(_figures(plan, finished_runs))
    while remaining := [run for run in places if run not in finished_runs]:
        before, busy = len(finished_runs), 0
        for run in remaining:
            try:
                figures = None if run in finished_runs else _run_figures(plan, folder, run, places, progress)
            except HeldError:
                busy += 1
                continue
            if figures is not None:
                finished_runs = {**finished_runs, **_finished(places), run: figures}
                finished(_figures(plan, finished_runs))
        if busy == len(remaining):
            break
        if len(finished_runs) == before:
            time.sleep(_LOOK_S)
            finished_runs = {**finished_runs, **_finished(places)}
    return _figures(plan, finished_runs)


def _run_figures(
    plan: Plan, folder: Path, run: _Run, places: Mapping[_Run, RunPlace], progress: Progress
) -> ContenderRun | None:
    """The figures of a run; None if the baseline prompts, which it begins with, are not finished.

    Raises:
        HeldError: another program is at it.
        MemtuneError: as `run_experiment`.
    """
    system, contender, seed = run
    place = places[run]
    baseline = None
    if contender.name != BASELINE:
        baseline = places[system, plan.contenders[0], plan.seeds[0]]
        try:
            with locked(baseline.lock):
                ready = baseline.reusable()
        except HeldError:
            ready = False
        if not ready:
            return None
    place.path.parent.mkdir(parents=True, exist_ok=True)
    with locked(place.lock):
        figures = place.figures()
        if figures is not None and (contender.name != BASELINE or place.reusable()):
            return figures
        return measure_run(
            contender,
            _configured(plan, folder, *run),
            plan.dataset,
            place,
            baseline=baseline,
            budget=plan.calls,
            observer=Phases(
                progress, f"{list(places).index(run) + 1} of {len(places)}: {system}, {contender.name}, seed {seed}"
            ),
        )


def _finished(places: Mapping[_Run, RunPlace]) -> dict[_Run, ContenderRun]:
    """The figures of the runs that need not be made.

    Those of the baseline prompts are made again if a search is left that begins with their replies, and these are gone.
    """
    finished_runs = {run: figures for run, place in places.items() if (figures := place.figures()) is not None}
    searched = {system for system, _, _ in places.keys() - finished_runs.keys()}
    return {
        (system, contender, seed): figures
        for (system, contender, seed), figures in finished_runs.items()
        if contender.name != BASELINE or system not in searched or places[system, contender, seed].reusable()
    }


def _figures(plan: Plan, finished_runs: Mapping[_Run, ContenderRun]) -> OptimizeFigures:
    runs = tuple(finished_runs[run] for run in plan.runs() if run in finished_runs)
    return OptimizeFigures(
        dataset=plan.config.dataset,
        model=plan.config.models.task.model,
        metric=plan.config.metric,
        calls=plan.calls,
        runs_planned=sum(1 for _ in plan.runs()),
        systems=compared(runs),
        runs=runs,
    )


def _place(folder: Path, system: str, contender: Contender, seed: int) -> RunPlace:
    own = contender_folder(lambda name: folder / file_name(system) / file_name(name), contender.name)
    return RunPlace(own / f"seed-{seed}")


def _configured(plan: Plan, folder: Path, system: str, contender: Contender, seed: int) -> RunConfig:
    config = plan.config
    # The others tune prompts alone.
    search: dict[str, object] = {"blame": contender.blame, "calls": plan.calls, "settings": {}}
    search["local_objectives"] = contender.local_objectives
    tracking = {"uri": config.tracking.uri or store_uri(folder), "traces": 0}
    return config.model_copy(
        update={
            "system": system,
            "system_settings": config.system_settings if system == config.system else {},
            "optimizer": contender.optimizer or CLOSED_LOOP,
            "rounds": plan.rounds if contender.optimizer is not None else 0,
            "seed": seed,
            "search": config.search.model_copy(update=search),
            "tracking": config.tracking.model_copy(update=tracking),
        }
    )


def _check_settings(plan: Plan, folder: Path) -> None:
    """Make sure that what is in the folder was made with the same settings, and keep them."""
    models = plan.config.models.roles()
    groups = plan.dataset.splits.named().values()
    now = {
        **{
            key: str(value)
            for key, value in lasting_params(plan.config).items()
            if key not in _PER_RUN and not key.startswith("tracking.")
        },
        # Of embedded models the settings that last leave out the name, since it may be a path.
        **{f"models.{role}.model": Path(settings.model).name for role, settings in models.items()},
        "data": digest([[conversation.model_dump(mode="json") for conversation in group] for group in groups]),
        "--calls": str(plan.calls),
        "--rounds": str(plan.rounds),
    }
    file = folder / SETTINGS
    if not file.exists():
        RunFolder(folder).write(SETTINGS, json.dumps(stamped(SETTINGS, now), indent=2) + "\n")
        return
    try:
        before = by_current_keys(read_stamped(SETTINGS, file.read_bytes(), file, _READER))
    except ValidationError:
        raise RunError(f"{file}: is damaged; name another --folder") from None
    if different := differing(before, now):
        first = different[0]
        raise ConfigError(
            f"{folder}: its runs have other values of {', '.join(different)} ({first}: {before.get(first)} there, "
            f"{now.get(first)} now); restore them, or name another --folder"
        )
