"""One run of a contender in a folder of its own: a home, a run as `memtune run` makes it, and its figures."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from benchmarks.optimize.contenders import Contender
from benchmarks.optimize.figures import ContenderRun, Point, area_under
from experiments.data.loaders import Dataset
from experiments.running.judging import calibrate_judge
from experiments.running.parts import open_evaluator
from experiments.running.run import Finished, run_experiment
from experiments.runs.config import RunConfig
from experiments.runs.fingerprint import CODE, code_digest, read_fingerprint
from experiments.runs.folder import BASELINE, CHAMPION, RunFolder
from optimizer.evaluation.evaluator import Outcome
from optimizer.tuning.results import Observer
from tracing.errors import RunError
from tracing.formats import read_stamped, stamped
from tracing.systems.conversations import first_problem

FIGURES = "figures.json"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The folder of one run."""

    path: Path

    @property
    def home(self) -> Path:
        """Cache and memories: its own, so that a contender pays for every call that its search needs."""
        return self.path / "home"

    @property
    def cache(self) -> Path:
        """Replies and memories that were paid for."""
        return self.home / "cache"

    @property
    def lock(self) -> Path:
        """Held by the program that makes the run; beside the folder, which may be removed."""
        return self.path.with_name(f"{self.path.name}.lock")

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.path / "run")

    def reusable(self) -> bool:
        """Whether it is finished and its replies are here, for the runs that begin with them."""
        return self.cache.is_dir() and (self.path / FIGURES).exists()

    def figures(self) -> ContenderRun | None:
        """What was measured; None if the run is not finished."""
        file = self.path / FIGURES
        try:
            return read_stamped(FIGURES, file.read_bytes(), file, TypeAdapter(ContenderRun))
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise RunError(
                f"{file}: {first_problem(error)}; delete the file, and it is made again without a call"
            ) from None


def measure_run(
    contender: Contender,
    config: RunConfig,
    dataset: Dataset,
    place: RunPlace,
    *,
    baseline: RunPlace | None,
    budget: int,
    observer: Observer,
) -> ContenderRun:
    """Make a run, or finish one that was interrupted, and keep its figures.

    It has the replies of `baseline`, a finished run of the baseline prompts, for nothing; that run itself has None. The
    area is normalised by `budget` calls.

    Raises:
        RunInterrupted: Ctrl-C; called again, it goes on.
        MemtuneError: as `run_experiment`.
    """
    _leave_other_code(place)
    place.path.mkdir(parents=True, exist_ok=True)
    if baseline is not None:
        _take_over(baseline.cache, place.cache)
    place.home.mkdir(exist_ok=True)
    begun = place.folder.path.exists()
    finished = run_experiment(
        config,
        dataset,
        place.home,
        out=None if begun else place.folder.path,
        resume=place.folder if begun else None,
        observers=(observer,),
    )
    outcomes = _held_out(config, dataset, place, observer)
    figures = _figures(contender, config, finished, outcomes, budget)
    RunFolder(place.path).write(FIGURES, json.dumps(stamped(FIGURES, figures.model_dump(mode="json")), indent=2) + "\n")
    return figures


def _figures(
    contender: Contender, config: RunConfig, finished: Finished, outcomes: list[Outcome], budget: int
) -> ContenderRun:
    result, cost = finished.result, finished.result.search
    start = result.baseline.get("validation")
    if cost is None or start is None:
        raise RunError(f"{finished.folder.path}: the search did not begin: {result.stopped}; fix that and start again")
    curve = (
        Point(calls=0, score=start.score),
        *(Point(calls=record.search_calls or 0, score=record.validation_score) for record in result.rounds),
    )
    return ContenderRun(
        system=config.system,
        contender=contender.name,
        seed=config.seed,
        scores={outcome.conversation.id: 0.0 if outcome.tainted is not None else outcome.score for outcome in outcomes},
        failed=tuple(outcome.conversation.id for outcome in outcomes if outcome.tainted is not None),
        questions=sum(len(outcome.conversation.questions) for outcome in outcomes),
        calls=cost.calls,
        tokens=cost.tokens,
        minutes=cost.seconds / 60,
        curve=curve,
        area=area_under(curve, budget),
        rewritten=finished.summary.rewritten,
        stopped=str(result.stopped),
        code=read_fingerprint(finished.folder)[CODE],
    )


def _held_out(config: RunConfig, dataset: Dataset, place: RunPlace, observer: Observer) -> list[Outcome]:
    """The champion's outcomes on the test conversations, which the run has cached."""
    splits = dataset.splits
    baseline, champion = place.folder.prompts(BASELINE), place.folder.prompts(CHAMPION)
    with open_evaluator(config, place.home) as evaluator:
        calibrate_judge(
            evaluator, baseline, splits.train, progress=partial(observer.progress, "calibration of the judge")
        )
        return evaluator.evaluate(champion, splits.test, progress=partial(observer.progress, "held out"))


def _leave_other_code(place: RunPlace) -> None:
    """Remove an unfinished run of other code, which could not be resumed: it starts over, with nothing paid."""
    if place.folder.path.exists() and read_fingerprint(place.folder).get(CODE) != code_digest():
        shutil.rmtree(place.path)


def _take_over(cache: Path, into: Path) -> None:
    """Copy a cache, whole or not at all."""
    if into.exists():
        return
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", suffix=".part", dir=into.parent) as scratch:
        shutil.copytree(cache, Path(scratch) / "cache").rename(into)
