"""One experiment from configuration to finished run folder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from experiments.data.loaders import Dataset
from experiments.mlflow_tracking.logged_datasets import split_data
from experiments.mlflow_tracking.tracking import MlflowRun
from experiments.reports.run_report import ReportInput, render_report, write_pages
from experiments.running.judging import calibrate_judge, judge_summary
from experiments.running.observers import Observers, RunJournal, WatchesBudget
from experiments.running.parts import check_endpoints, evaluator_of, variants_of
from experiments.running.run_parts import RunParts, config_of_run, loop_settings, open_parts, rewrite_files
from experiments.runs.cases_file import RunCase, Side, run_cases, write_cases, write_verdicts
from experiments.runs.config import RunConfig
from experiments.runs.fingerprint import check_fingerprint, fingerprint_json
from experiments.runs.folder import (
    BASELINE,
    BY_HAND,
    CONFIG,
    FINGERPRINT,
    LEDGER,
    LOCK,
    PROMPTS,
    REPORT,
    TRACES,
    RunFolder,
)
from experiments.runs.lock import locked
from experiments.runs.run_settings import dump_config, params_of
from experiments.runs.seen_cases import SeenCase, seen_cases
from experiments.runs.summary import RunFacts, Summary, sizes
from optimizer.evaluation.scores import Splits
from optimizer.tuning.results import CallCounts, LoopResult, LoopSettings, Observer
from optimizer.tuning.round import Approve
from optimizer.tuning.stopped import Stopped
from tracing.errors import MemtuneError, RunError
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.accounting.price import price_of
from tracing.systems.prompts import Candidate
from tracing.version import memtune_version

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator
    from optimizer.evaluation.variants import Variants
    from optimizer.tuning.failures import Failures
    from tracing.llm.access import ModelAccess
    from tracing.llm.accounting.budget import Budget


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that ended, for the reason in `summary.stopped`.

    `remaining` is what is left of its budgets, in words; None if it used them, or has none.
    """

    folder: RunFolder
    summary: Summary
    result: LoopResult
    problems: tuple[str, ...]
    remaining: str | None = None


SendingProgress = Callable[[int, int], None]
"""Told how many of how many parts of a run MLflow has."""

SAVING, SENDING = "saving the run", "sending to MLflow"
"""Phases of progress after the search."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run; its progress is saved in `folder`."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(str(folder.path))
        self.folder = folder.path
        self.add_note(f"saved in {folder.path}; go on with: {folder.resume_command}")


def run_experiment(
    config: RunConfig,
    dataset: Dataset,
    home: Path,
    *,
    out: Path | None = None,
    resume: RunFolder | None = None,
    observers: Sequence[Observer] = (),
    by_hand: Path | None = None,
    approve: Approve | None = None,
    on_start: Callable[[], None] = lambda: None,
    on_result: Callable[[Finished], SendingProgress] | None = None,
    now: Callable[[], datetime] = datetime.now,
) -> Finished:
    """Optimize, and leave a complete run folder and MLflow run, also when stopped early.

    A resumed run starts over: its replies are in the response cache, and its ledger distinguishes them from those of
    other runs, so it passes through the same states to where it was stopped, and its counts are those of one run.

    Args:
        out: folder of a new run; under the home by default.
        resume: the run to continue, instead of a new one.
        by_hand: file or folder of rewrites by hand (`read_rewrites`); a resumed run has its own.
        approve: asked before there is another champion (`LoopSettings`).
        on_start: called once, before the first call, where nothing is wrong with the settings.
        on_result: called as soon as the folder is complete, before MLflow has the rest of the run; what it returns is
            told how that goes on. By default the observers are. Ctrl-C then ends only this.

    Raises:
        RunInterrupted: Ctrl-C; everything so far is saved.
        CallFailedError: an endpoint cannot be used; no run was started.
        RunError: another process works on the run, what it depends on has changed, or an endpoint that a resumed run
            needs cannot be used.
        MemtuneError: the run cannot start, or failed; its progress is saved.
    """
    config = config_of_run(config, resume)
    with contextlib.ExitStack() as stack:
        run = _prepare(config, dataset, home, stack, out=out, resume=resume, by_hand=by_hand, approve=approve, now=now)
        for watcher in observers:
            if isinstance(watcher, WatchesBudget):
                watcher.watch(run.parts.access.budget)
        on_start()
        observer = Observers(run.journal, run.tracked, *observers)
        try:
            result = _optimize(run, observer)
        except KeyboardInterrupt:
            _break_off(run, observer, Stopped("interrupted"), "KILLED")
            raise RunInterrupted(run.folder) from None
        except MemtuneError as error:
            _break_off(run, observer, Stopped("error", str(error)), "FAILED")
            if "--resume" not in str(error):
                error.add_note(f"what was done is kept; when that is mended, go on with: {run.folder.resume_command}")
            raise
        except BaseException as error:
            _break_off(run, observer, Stopped("fault", type(error).__name__), "FAILED")
            raise
        return _finish(run, observer, result, "FINISHED", on_result)


@dataclass(frozen=True, slots=True)
class _Run:
    """A run with its folder, models and MLflow run, before the search starts.

    Attributes:
        splits: its conversations.
        folder: of the run, locked by this process.
        parts: what the configuration names; their calls are recorded in the run's ledger.
        evaluator: scores candidates.
        variants: the system under settings that may be tuned; None if there are none.
        failures: attributes the wrong answers.
        loop: how the optimizer searches.
        params: flat settings, for the report.
        journal, tracked: keep the folder and MLflow up to date.
        track_cases: prepares the cases of both sides for MLflow.
    """

    splits: Splits
    folder: RunFolder
    parts: RunParts
    evaluator: Evaluator
    variants: Variants | None
    failures: Failures
    loop: LoopSettings
    params: Mapping[str, Any]
    journal: RunJournal
    tracked: MlflowRun
    track_cases: Callable[[Sequence[SeenCase], Sequence[SeenCase], Candidate], None]


def _prepare(
    config: RunConfig,
    dataset: Dataset,
    home: Path,
    stack: contextlib.ExitStack,
    *,
    out: Path | None,
    resume: RunFolder | None,
    by_hand: Path | None,
    approve: Approve | None,
    now: Callable[[], datetime],
) -> _Run:
    """Everything that a run needs before its first call, ordered so that a mistake costs least.

    `stack` closes what is opened: models, lock and ledger.
    """
    from optimizer.tuning.failures import Failures

    parts = open_parts(config, dataset, home, stack, resume=resume, by_hand=by_hand)
    if parts.server is not None:
        parts.server.open()
    files = {CONFIG: dump_config(config), FINGERPRINT: fingerprint_json(parts.fingerprint)}
    if config.prompts.start is not None:
        files |= {f"{PROMPTS}/{BASELINE}/{name}.txt": text for name, text in parts.baseline.items()}
    files |= {f"{BY_HAND}/{name}": text for name, text in rewrite_files(parts.rewrites).items()}
    if resume is None:
        check_endpoints(config, parts.access)
        folder = RunFolder.create(home, system=config.system, now=now(), files=files, out=out)
        stack.enter_context(locked(folder.path / LOCK))
    else:
        folder = resume
        stack.enter_context(locked(folder.path / LOCK))
        check_fingerprint(folder, parts.fingerprint)
        check_endpoints(config, parts.access, when_needed=True)
        # Its limits may be larger now, and were kept to for as long as it goes on.
        folder.write(CONFIG, files[CONFIG])
        folder.write(FINGERPRINT, files[FINGERPRINT])
    ledger = stack.enter_context(contextlib.closing(Ledger(folder.path / LEDGER, cache=home / "cache")))
    parts = replace(parts, access=parts.access.with_ledger(ledger))
    evaluator = evaluator_of(config, parts.system, parts.access, home, traces=folder.path / TRACES)
    params = params_of(config)
    identities = {f"identity.{role}": identity for role, identity in parts.access.identities().items()}
    tracked = MlflowRun.start(
        uri=config.tracking.uri,
        experiment=config.tracking.experiment,
        home=home,
        folder=folder,
        system=config.system,
        baseline=parts.baseline,
        params={**params, "memtune_version": memtune_version(), **identities},
        datasets=split_data(config.dataset, dataset.splits),
        resumed=resume is not None,
    )
    earlier = None if resume is None else _earlier_summary(resume)
    return _Run(
        dataset.splits,
        folder,
        parts,
        evaluator,
        variants_of(config, evaluator),
        Failures(parts.attributor, parts.access, parts.system.operations),
        loop_settings(config, parts, folder, approve, () if earlier is None else earlier.rounds),
        params,
        RunJournal(
            folder,
            partial(_facts, config, dataset, folder, tracked, parts.access),
            parts.baseline,
            partial(CallCounts.so_far, parts.access, evaluator),
            earlier,
            config.margin if config.goal == "cheaper" else None,
        ),
        tracked,
        partial(tracked.cases, metric=config.metric, method=config.attribution, most=config.tracking.traces),
    )


def _earlier_summary(folder: RunFolder) -> Summary | None:
    """The summary of a run that is resumed; None if it did not get that far, or its summary is damaged."""
    with contextlib.suppress(RunError):
        return folder.summary()
    return None


def _optimize(run: _Run, observer: Observer) -> LoopResult:
    """Search, once the judge is calibrated, where a model judges."""
    from optimizer.search.optimize import optimize

    return optimize(
        evaluator=run.evaluator,
        splits=run.splits,
        baseline=run.parts.baseline,
        settings=run.loop,
        access=run.parts.access,
        failures=run.failures,
        observer=observer,
        optimizer=run.parts.optimizer,
        proposers=run.parts.proposers,
        variants=run.variants,
        begin=partial(
            calibrate_judge,
            run.evaluator,
            run.parts.baseline,
            run.splits.train,
            progress=partial(observer.progress, "calibration of the judge"),
        ),
    )


def _break_off(run: _Run, observer: Observer, stopped: Stopped, status: Literal["KILLED", "FAILED"]) -> None:
    """Complete the folder and the MLflow run of a run that did not end by itself; they keep what was found before."""
    if run.journal.leave(stopped):
        run.tracked.leave(stopped, status=status)
    else:
        _finish(run, observer, run.journal.result(stopped), status)


def _finish(
    run: _Run,
    observer: Observer,
    result: LoopResult,
    status: Literal["FINISHED", "KILLED", "FAILED"],
    on_result: Callable[[Finished], SendingProgress] | None = None,
) -> Finished:
    """Complete the folder, and then the MLflow run, however the run ended."""
    observer.progress(SAVING, 0, 2)
    champion = result.champion_candidate
    of_baseline = seen_cases(run.evaluator, run.splits, run.parts.baseline, run.failures)
    of_champion = of_baseline
    if champion != run.parts.baseline or result.settings:
        changed = {name: change.after for name, change in result.settings.items()}
        evaluator = run.variants.under(changed) if run.variants is not None else run.evaluator
        of_champion = seen_cases(evaluator, run.splits, champion, run.failures)
    summary = run.journal.save(result)
    judge = run.evaluator.model_judge
    if judge is not None:
        judgement = judge_summary(judge, run.parts.access.judge.settings.model, chain(of_baseline, of_champion))
        summary = replace(summary, judge=judgement)
        run.folder.write_summary(summary)
        write_verdicts(run.folder, run.evaluator.cases())
    sides: dict[Side, list[SeenCase]] = {"baseline": of_baseline, "champion": of_champion}
    cases = run_cases(run.folder, sides)
    write_cases(run.folder, cases)
    observer.progress(SAVING, 1, 2)
    run.folder.write(REPORT, render_report(_report_of(run, result, summary, cases, sides)))
    write_pages(run.folder, chain(of_baseline, of_champion))
    observer.progress(SAVING, 2, 2)
    remaining = None if result.stopped.by_budget else _left_over(run.parts.access.budget)
    finished = Finished(run.folder, summary, result, (), remaining)
    shown = partial(observer.progress, SENDING) if on_result is None else on_result(finished)

    def sending(done: int, total: int) -> None:
        run.journal.progress(SENDING, done, total)
        shown(done, total)

    interrupted: list[str] = []
    try:
        run.track_cases(of_baseline, of_champion, champion)
        run.tracked.finish(result, status=status, progress=sending)
    except KeyboardInterrupt:
        # The run is complete; what MLflow lacks is told, and can be sent later.
        interrupted.append("interrupted while it was written")
    if summary.mlflow is None and run.tracked.link is not None:
        summary = replace(summary, mlflow=run.tracked.link)
        run.folder.write_summary(summary)
    return replace(finished, summary=summary, problems=(*run.tracked.problems, *interrupted))


def _left_over(budget: Budget) -> str | None:
    """What is left of each limit, in words; None if there is none."""
    spent, limits = budget.spent, budget.limits
    uses = {
        "minutes": (budget.seconds / 60, None if limits.seconds is None else limits.seconds / 60),
        "calls": (spent.calls, limits.calls),
        "tokens": (spent.tokens, limits.tokens),
        "money": (spent.money, limits.money),
    }
    rest = [f"{limit - used:.4g} of {limit:g} {name}" for name, (used, limit) in uses.items() if limit and used < limit]
    return ", ".join(rest) or None


def _facts(config: RunConfig, dataset: Dataset, folder: RunFolder, tracked: MlflowRun, access: ModelAccess) -> RunFacts:
    return RunFacts(
        run_id=folder.id,
        system=config.system,
        dataset=config.dataset,
        model=config.models.task.model,
        seed=config.seed,
        metric=config.metric,
        attribution=config.attribution,
        optimizer=config.optimizer,
        samples=access.task.samples,
        endpoints=access.accepted(),
        prices={role: price_of(settings) for role, settings in config.models.roles().items()},
        splits=sizes(dataset.splits),
        prompts_dir=PROMPTS,
        report=REPORT,
        mlflow=tracked.link,
    )


def _report_of(
    run: _Run,
    result: LoopResult,
    summary: Summary,
    cases: Sequence[RunCase],
    sides: Mapping[Side, Sequence[SeenCase]],
) -> ReportInput:
    return ReportInput(
        summary=summary,
        baseline=run.parts.baseline,
        champion=result.champion_candidate,
        error_types={signal.operation: signal.error_types for signal in run.journal.signals if signal.failures},
        power=result.power,
        operations=run.parts.access.meter.snapshot(),
        settings=run.params,
        rewrites=[(record.n, rewrite) for record in result.rounds for rewrite in record.rewrites],
        champions={record.n + 1: record.champion for record in result.rounds if record.champion is not None},
        cases=cases,
        pictures={
            (seen_case.case.conversation, seen_case.case.question.id, side): seen_case.picture
            for side, group in sides.items()
            for seen_case in group
            if seen_case.picture is not None
        },
        resume=run.folder.resume_command,
    )
