"""One experiment from configuration to finished run folder."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from experiments.data.loaders import Dataset
from experiments.experiment.handwritten import handwritten
from experiments.experiment.journal import RunJournal
from experiments.experiment.judging import calibrate_judge, judge_summary
from experiments.experiment.wiring import Parts, open_parts
from experiments.mlflow_tracking.tracking import MlflowRun
from experiments.reports.run_report import ReportInput, render_report
from experiments.runs.config import RunConfig, anchored
from experiments.runs.fingerprint import check_fingerprint, fingerprint, read_fingerprint
from experiments.runs.folder import CONFIG, FINGERPRINT, LEDGER, LOCK, PROMPTS, REPORT, TRACES, RunFolder
from experiments.runs.lock import locked
from experiments.runs.manifest import memtune_version
from experiments.runs.run_settings import dump_config, params_of
from experiments.runs.seen_cases import seen_cases
from experiments.runs.summary import RunFacts, Summary, sizes
from experiments.runs.verdicts_file import write_verdicts
from optimizer.search.results import (
    Attempt,
    CallCounts,
    IterationRecord,
    LoopResult,
    LoopSettings,
    Observer,
    Score,
    SplitName,
    Verdict,
)
from tracing.errors import MemtuneError
from tracing.llm.ledger import Ledger
from tracing.systems.prompts import seed_candidate

if TYPE_CHECKING:
    from attribution.signals import Signal


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that ended, for whatever reason `summary.stopped` gives."""

    folder: RunFolder
    summary: Summary
    result: LoopResult
    problems: tuple[str, ...]


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run; what it had reached is saved in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder


def run_experiment(
    config: RunConfig,
    dataset: Dataset,
    home: Path,
    *,
    out: Path | None = None,
    resume: RunFolder | None = None,
    observers: Sequence[Observer] = (),
    candidates: Path | None = None,
    approve: Callable[[Attempt, str], bool] | None = None,
    now: Callable[[], datetime] = datetime.now,
) -> Finished:
    """Optimize, and leave a complete run folder and MLflow run behind, also when stopped early.

    A resumed run starts over: its replies are in the response cache, and its ledger tells them from those of other
    runs, so that it passes through the same states to where it was stopped, and its counts are those of one run.

    Args:
        out: folder of a new run; under the home by default.
        resume: the run to go on with, instead of a new one.
        candidates: file or folder of rewrites by hand (`handwritten`).
        approve: asked before a rewrite becomes the champion (`LoopSettings`).

    Raises:
        RunInterrupted: Ctrl-C; everything so far is saved.
        CallFailedError: an endpoint cannot be used; no run was begun.
        RunError: another process works on the run, or what it depends on has changed.
        MemtuneError: the run cannot start, or failed; what it had reached is saved.
    """
    from optimizer.search.loop import optimize

    config = anchored(config, Path.cwd())
    with open_parts(config, home) as opened, contextlib.ExitStack() as held:
        parts = opened
        parts.access.check()
        hand = handwritten(candidates, parts.system.prompts) if candidates is not None else ()
        seed = seed_candidate(parts.system.prompts)
        if resume is not None:
            parts = parts.going_on_as(read_fingerprint(resume).get("models.embedding", ""))
        depends_on = fingerprint(config, dataset.splits, seed, parts.access.identities(), hand)
        files = {CONFIG: dump_config(config), FINGERPRINT: json.dumps(depends_on, indent=2) + "\n"}
        folder = resume or RunFolder.create(home, system=config.system, now=now(), files=files, out=out)
        held.enter_context(locked(folder.path / LOCK))
        if resume is not None:
            check_fingerprint(folder, depends_on)
            folder.write(CONFIG, files[CONFIG])
        ledger = held.enter_context(contextlib.closing(Ledger(folder.path / LEDGER, cache=home / "cache")))
        parts = parts.of_run(ledger, folder.path / TRACES)
        settings = params_of(config)
        tracked = MlflowRun.start(
            uri=config.tracking.uri,
            experiment=config.tracking.experiment,
            home=home,
            folder=folder,
            system=config.system,
            seed=seed,
            params={**settings, "memtune_version": memtune_version(), **_identities(parts)},
            resumed=resume is not None,
        )
        facts = RunFacts(
            run_id=folder.id,
            system=config.system,
            dataset=config.dataset,
            model=config.models.task.model,
            seed=config.seed,
            metric=config.metric,
            splits=sizes(dataset.splits),
            prompts_dir=PROMPTS,
            report=REPORT,
            mlflow=tracked.link,
        )
        journal = RunJournal(folder, facts, seed, lambda: _calls(parts))

        def finish(result: LoopResult, status: Literal["FINISHED", "KILLED", "FAILED"]) -> Finished:
            champion = result.champion_candidate
            of_seed = seen_cases(parts.evaluator, dataset.splits, seed)
            of_champion = of_seed if champion == seed else seen_cases(parts.evaluator, dataset.splits, champion)
            summary = journal.save(result)
            if parts.evaluator.model_judge is not None:
                found = judge_summary(
                    parts.evaluator.model_judge, parts.access.judge.settings.model, chain(of_seed, of_champion)
                )
                summary = summary.model_copy(update={"judge": found})
                folder.write_summary(summary)
                write_verdicts(folder, parts.evaluator.cases())
            page = ReportInput(
                summary=summary,
                seed=seed,
                champion=champion,
                error_types={signal.operation: signal.error_types for signal in journal.signals if signal.failures},
                power=result.power,
                tokens_per_question=result.tokens_per_question,
                operations=parts.access.meter.snapshot(),
                settings=settings,
                attempts=[(each.n, attempt) for each in result.iterations for attempt in each.attempts],
            )
            folder.write(REPORT, render_report(page))
            tracked.cases(of_seed, of_champion, metric=config.metric, most=config.tracking.traces)
            tracked.finish(result, status=status)
            if summary.mlflow is None and tracked.link is not None:
                summary = summary.model_copy(update={"mlflow": tracked.link})
                folder.write_summary(summary)
            return Finished(folder, summary, result, tuple(tracked.problems))

        told = _Together((journal, tracked, *observers))
        try:
            calibrate_judge(
                parts.evaluator,
                seed,
                dataset.splits.train,
                progress=lambda done, total: told.progress("calibration of the judge", done, total),
            )
            result = optimize(
                system=parts.system,
                evaluator=parts.evaluator,
                splits=dataset.splits,
                seed_candidate=seed,
                settings=LoopSettings(config.rounds, config.proposals, config.seed, hand, approve),
                access=parts.access,
                observer=told,
            )
        except KeyboardInterrupt:
            finish(journal.result("interrupted"), "KILLED")
            raise RunInterrupted(folder.path) from None
        except MemtuneError as error:
            finish(journal.result(f"error: {error}"), "FAILED")
            raise
        except BaseException as error:
            finish(journal.result(f"fault: {type(error).__name__}"), "FAILED")
            raise
        return finish(result, "FINISHED")


def _identities(parts: Parts) -> dict[str, Any]:
    return {f"identity.{role}": identity for role, identity in parts.access.identities().items()}


def _calls(parts: Parts) -> CallCounts:
    spent = parts.evaluator.spent
    return CallCounts(made=spent.made, cached=spent.cached, without_reuse=spent.plain)


class _Together:
    """Tells several observers."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def baseline(self, split: SplitName, score: Score) -> None:
        for observer in self._observers:
            observer.baseline(split, score)

    def blame(self, iteration: int, signals: Sequence[Signal]) -> None:
        for observer in self._observers:
            observer.blame(iteration, signals)

    def iteration(self, record: IterationRecord) -> None:
        for observer in self._observers:
            observer.iteration(record)

    def verdict(self, verdict: Verdict) -> None:
        for observer in self._observers:
            observer.verdict(verdict)

    def progress(self, phase: str, done: int, total: int) -> None:
        for observer in self._observers:
            observer.progress(phase, done, total)
