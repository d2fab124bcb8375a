"""A run in MLflow: a parent run with the curves; nested in it the runs `baseline` and `champion`, and each round's.

Everything goes through `MlflowClient` with explicit run ids: MLflow's active run is local to a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from time import time
from typing import Any

from attribution.signals import Signal
from experiments.mlflow_tracking.case_traces import case_traces, question_set
from experiments.mlflow_tracking.logged_datasets import SplitData, evaluation_data, log_datasets
from experiments.mlflow_tracking.outbox import Outbox, open_outbox
from experiments.mlflow_tracking.prompt_versions import (
    NameChampion,
    RegisterPrompt,
    accepted_reasons,
    prompt_name,
    text_digest,
)
from experiments.mlflow_tracking.run_artifacts import SIDES, blame_artifacts, case_tables, round_artifacts, tried_table
from experiments.mlflow_tracking.run_description import describe, describe_progress
from experiments.mlflow_tracking.run_metrics import (
    COSTS,
    VALIDATION,
    before_a_step,
    parent_score,
    round_values,
    run_costs,
    shares,
    side_cost,
    side_scores,
    spent_so_far,
    verdict_values,
)
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import NOTE, PARENT
from experiments.mlflow_tracking.trace_writes import trace_writes
from experiments.mlflow_tracking.writes import (
    EndRun,
    LogFiles,
    LogMetrics,
    LogParams,
    NameRun,
    SetTag,
    StartRun,
    Write,
)
from experiments.runs.folder import CONFIG, PROMPTS, REPORT, REWRITES, STUDY, SUMMARY, RunFolder
from experiments.runs.progress import read_progress
from experiments.runs.seen_cases import SeenCase
from experiments.runs.summary import SummaryMlflow
from optimizer.evaluation.scores import Score, SplitName
from optimizer.gating.verdict import Verdict
from optimizer.tuning.results import LoopResult
from optimizer.tuning.round import RoundRecord, SettingChange
from optimizer.tuning.stopped import Stopped
from tracing.errors import RunError
from tracing.recording.redaction import Redaction, excerpt
from tracing.systems.prompts import Candidate

BASELINE, CHAMPION = SIDES

RUN, PART = "memtune.run", "memtune.part"
"""Tags of MLflow's runs: the id of memtune's run, and in it `baseline`, `champion`, `round 1` and so on."""

PARAM_LIMIT = 500
"""Longest value kept as a parameter; settings are short, and prompts are not parameters."""

FINISH_SECONDS = 300.0
"""How long the end of a run waits for MLflow; what is not written by then stays in the outbox."""

PROGRESS_SECONDS = 15.0
"""Between two descriptions of a run in the same phase."""

SEND_SECONDS = 3600.0
"""Time limit of `memtune mlflow send`, generous because its user waits for nothing else."""


class MlflowRun:
    """An observer that records one experiment in MLflow.

    A store that fails or hangs neither ends nor blocks an experiment: what it did not take waits in the run's folder
    (`outbox`), which has everything else.

    Args:
        baseline: the prompts the run starts from.
        clock: gives the time of points, in seconds since the epoch.
        resumed: whether points may exist already.
    """

    def __init__(
        self,
        outbox: Outbox,
        system: str,
        baseline: Candidate,
        folder: RunFolder,
        clock: Callable[[], float] = time,
        *,
        datasets: tuple[SplitData, ...] = (),
        resumed: bool = False,
    ) -> None:
        self._resumed = resumed
        self._outbox, self._system, self._baseline, self._folder, self._clock = outbox, system, baseline, folder, clock
        self._datasets = datasets
        self._open: dict[str, bool] = {}
        self._rounds: list[RoundRecord] = []
        self._curves: dict[str, float] = {}
        self._closing: list[Write] = []
        self._stands = False
        self._phase, self._next_progress = "", 0.0

    @classmethod
    def start(
        cls,
        *,
        uri: str | None,
        experiment: str,
        home: Path,
        folder: RunFolder,
        system: str,
        baseline: Candidate,
        params: Mapping[str, Any],
        datasets: tuple[SplitData, ...] = (),
        clock: Callable[[], float] = time,
        resumed: bool = False,
    ) -> MlflowRun:
        """Open the store, creating it and the experiment if needed, and start the parent run.

        An unreachable server does not prevent the start. A resumed run continues in its MLflow run, sends what waits
        in its folder, and logs no point twice.

        Raises:
            ConfigError: the store cannot be used.
        """
        home.mkdir(parents=True, exist_ok=True)
        outbox = open_outbox(folder, uri or store_uri(home), experiment, resumed=resumed)
        self = cls(outbox, system, baseline, folder, clock, datasets=datasets, resumed=resumed)
        values = {name: excerpt(str(value), PARAM_LIMIT) for name, value in params.items()}
        tags = {"mlflow.source.name": "memtune run", RUN: folder.id}
        outbox.send(StartRun(title=self._title, moment=self._now(), tags=tags), LogParams(values=values))
        outbox.send(
            *log_datasets(datasets),
            *(self._version(name, text, f"baseline of {system}") for name, text in baseline.items()),
        )
        return self

    @property
    def link(self) -> SummaryMlflow | None:
        """Where the run is; None until the store has taken its start."""
        return self._outbox.link

    @property
    def problems(self) -> list[str]:
        """What MLflow has not received, in words."""
        problems = list(self._outbox.refused)
        if self._outbox.waiting:
            why = f" ({self._outbox.trouble})" if self._outbox.trouble else ""
            remedy = f"`memtune mlflow send {self._folder.named}` sends them"
            problems.insert(0, f"{self._outbox.waiting} writes wait in the run's folder{why}; {remedy}")
        return problems

    def baseline(self, split: SplitName, score: Score) -> None:
        self._metrics(self._side_run(BASELINE), side_scores(split, score), step=0)
        if split == "validation":
            self._curve({VALIDATION: score.score}, step=0)

    def blame(self, n: int, signals: Sequence[Signal]) -> None:
        nested = self._round_run(n)
        self._metrics(nested, shares(signals), step=n)
        self._outbox.send(*blame_artifacts(nested, n, signals))

    def round(self, record: RoundRecord) -> None:
        self._rounds.append(record)
        nested = self._round_run(record.n)
        cost = {f"spending/{name}": getattr(record, name) for name in (*COSTS, "proposals")}
        score = {VALIDATION: record.validation_score}
        self._metrics(nested, score | round_values(record) | cost, step=record.n)
        self._curve(score, step=record.n)
        tags = {"accepted": str(record.accepted).lower(), "edited": ", ".join(record.edited)}
        tags |= _settings_tags(record.changed)
        if record.optimizer is not None:
            tags["optimizer"] = record.optimizer
        self._outbox.send(*(SetTag(run=nested, key=key, value=value) for key, value in tags.items()))
        champion = record.champion or {}
        versions = [self._version(name, champion[name], reason) for name, reason in accepted_reasons(record).items()]
        self._outbox.send(*round_artifacts(nested, self._rounds), *versions)
        self._end(nested, "FINISHED")

    def verdict(self, verdict: Verdict) -> None:
        self._metrics(PARENT, verdict_values(verdict), step=0)
        self._outbox.send(SetTag(key="verdict", value=verdict.verdict))
        alone = verdict.prompts_alone
        # Texts that lose without the settings they were tuned with are no champion of their name.
        verdicts = {verdict.verdict, alone.verdict if alone is not None else None}
        self._stands = not verdicts & {"regressed", "worse"}

    def progress(self, phase: str, completed: int, total: int, failed: int = 0) -> None:
        """Describe the run by how far it is, at most every `PROGRESS_SECONDS` in a phase; not while writes wait."""
        now = self._clock()
        if self._outbox.waiting or (phase == self._phase and now < self._next_progress):
            return
        self._phase, self._next_progress = phase, now + PROGRESS_SECONDS
        # Where the folder cannot be read or written to, other parts of the run say so.
        with suppress(RunError):
            known = read_progress(self._folder)
            if known is not None:
                moment = f"{datetime.fromtimestamp(now).astimezone():%H:%M}"
                note = describe_progress(self._folder.summary(), known, self._folder.named, moment)
                self._outbox.send(SetTag(key=NOTE, value=note))

    def cases(
        self,
        baseline: Sequence[SeenCase],
        champion: Sequence[SeenCase],
        candidate: Candidate,
        *,
        metric: str,
        method: str,
        most: int,
    ) -> None:
        """Prepare the cases of both sides as tables, and those of `most` questions (`question_set`) as traces.

        Traces are in the run of their side. If the champion is the baseline, only that has them. Those that a resumed
        run has of an earlier champion are deleted. All of it is sent by `finish`, last.

        Args:
            candidate: the champion's prompts.
            metric: by which replies are scored.
            method: which attributed them.
        """
        questions = question_set(baseline, champion, most)
        self._closing += case_tables(baseline, champion)
        tested = [
            (seen_case.case.conversation, seen_case.case.question)
            for seen_case in baseline
            if seen_case.split == "test"
        ]
        for data in self._datasets:
            if data.use == "test" and tested:
                self._closing += evaluation_data(data, tested)
        for side, cases, texts in (
            (BASELINE, questions.baseline, self._baseline),
            (CHAMPION, questions.champion, candidate),
        ):
            # As the registry has them: writes are redacted on their way.
            prompts = {
                prompt_name(self._system, name): text_digest(Redaction().text(text)) for name, text in texts.items()
            }
            traces = list(case_traces(side, cases, questions, metric=metric, method=method, prompts=prompts))
            if traces:
                self._side_run(side)
            ended_with = CHAMPION if questions.champion else BASELINE
            self._closing += trace_writes(side, traces, final=side == ended_with)

    def finish(
        self, result: LoopResult, *, status: str = "FINISHED", progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Record the champion and the folder's files, and end the run with `status` (FINISHED, KILLED or FAILED).

        Args:
            progress: told how much of it MLflow has.

        Raises:
            KeyboardInterrupt: Ctrl-C; what is not sent by then waits in the run's folder.
        """
        changed = result.champion_candidate != self._baseline or bool(result.settings)
        # MLflow lists metrics in the order in which they came: first the test, and last what was spent.
        for split in ("test", "train"):  # the validation is a curve
            for side, scores in ((BASELINE, result.baseline), (CHAMPION, result.champion)):
                if split in scores:
                    self._metrics(PARENT, parent_score(split, side, scores[split]), step=0)
        for record in self._rounds:
            self._curve(round_values(record), step=record.n)
        for n, spent in spent_so_far(self._rounds):
            self._curve(spent, step=n)
        self._metrics(PARENT, run_costs(result), step=0)
        self._outbox.send(*tried_table(result.tried))
        if result.baseline:
            self._metrics(self._side_run(BASELINE), side_cost(result, BASELINE), step=0)
        if result.champion and changed:
            run = self._side_run(CHAMPION)
            for split, score in sorted(result.champion.items()):
                self._metrics(run, side_scores(split, score), step=0)
            self._metrics(run, side_cost(result, CHAMPION), step=0)
        summary = self._folder.summary()
        note = describe(summary, self._baseline, result.champion_candidate)
        endpoints = {f"endpoint.{role}": accepted.description for role, accepted in summary.endpoints.items()}
        self._outbox.send(NameRun(title=self._ended(result)), SetTag(key=NOTE, value=note))
        tags = _settings_tags(result.settings) | endpoints
        self._outbox.send(*(SetTag(key=key, value=value) for key, value in tags.items()))
        names = [name for name in (REPORT, SUMMARY, CONFIG, REWRITES, STUDY) if (self._folder.path / name).is_file()]
        self._outbox.send(
            SetTag(key="stopped", value=str(result.stopped)), *(LogFiles(path=n) for n in (*names, PROMPTS))
        )
        # A run that was stopped before its test may be resumed, and its champion may lose.
        for name, text in (result.champion_candidate if self._stands else self._baseline).items():
            better = text != self._baseline.get(name)
            self._outbox.send(NameChampion(name=prompt_name(self._system, name), text=text, better=better))
        self._end_all(status, progress)

    def leave(self, stopped: Stopped, *, status: str) -> None:
        """End the run with what it had before it was resumed; why it ended this time is all that is new."""
        with suppress(RunError):
            note = describe(self._folder.summary(), self._baseline, self._folder.prompts(CHAMPION))
            self._outbox.send(SetTag(key=NOTE, value=note))
        self._outbox.send(SetTag(key="stopped", value=str(stopped)), LogFiles(path=SUMMARY))
        self._end_all(status)

    @property
    def _title(self) -> str:
        return self._system.rpartition(":")[2]

    def _ended(self, result: LoopResult) -> str:
        """The run's title with its scores on the test."""
        before, after = result.baseline.get("test"), result.champion.get("test")
        if before is None:
            return self._title
        if after is None or (result.champion_candidate == self._baseline and not result.settings):
            return f"{self._title} {before.score:.2f}"
        return f"{self._title} {before.score:.2f}→{after.score:.2f}"

    def _version(self, prompt: str, text: str, message: str) -> RegisterPrompt:
        tags = {RUN: self._folder.id, "memtune.system": self._system}
        return RegisterPrompt(name=prompt_name(self._system, prompt), text=text, message=message, tags=tags)

    def _round_run(self, n: int) -> str:
        return self._nested_run(f"round {n}", {"round": str(n)})

    def _side_run(self, side: str) -> str:
        return self._nested_run(side, {"memtune.side": side}, self._datasets)

    def _nested_run(self, name: str, tags: Mapping[str, str], data: tuple[SplitData, ...] = ()) -> str:
        if name not in self._open:
            self._open[name] = True
            run_tags = {RUN: self._folder.id, PART: name, **tags}
            start = StartRun(run=name, title=f"{name} · {self._title}", moment=self._now(), tags=run_tags)
            self._outbox.send(start, *log_datasets(data, name))
        return name

    def _end_all(self, status: str, progress: Callable[[int, int], None] | None = None) -> None:
        ended = [name for name, still in self._open.items() if still]
        moment = self._now()
        # What people look at first is written first, and the traces, which take longest, when the run has ended.
        self._outbox.queue(
            [*(EndRun(run=run, status=status, moment=moment) for run in (*ended, PARENT)), *self._closing]
        )
        self._open |= dict.fromkeys(ended, False)
        self._closing = []
        self._outbox.flush(seconds=FINISH_SECONDS, progress=progress)

    def _end(self, run: str, status: str) -> None:
        self._outbox.send(EndRun(run=run, status=status, moment=self._now()))
        self._open[run] = False

    def _curve(self, values: Mapping[str, float], *, step: int) -> None:
        """A point of each curve of the parent run; what changes does so at its step."""
        before = before_a_step(self._curves, values)
        moment = self._now()
        points = [LogMetrics(values=before, step=step, moment=moment - 1, once=self._resumed)] if before else []
        points.append(LogMetrics(values=dict(values), step=step, moment=moment, once=self._resumed))
        self._outbox.send(*points)
        self._curves |= values

    def _metrics(self, run: str, values: Mapping[str, float], *, step: int) -> None:
        self._outbox.send(LogMetrics(run=run, values=dict(values), step=step, moment=self._now(), once=self._resumed))

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _settings_tags(changes: Mapping[str, SettingChange]) -> dict[str, str]:
    return {f"settings.{name}": f"{change.before} → {change.after}" for name, change in changes.items()}
