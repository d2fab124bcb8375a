"""A run in MLflow: one parent run with the curves; nested in it the runs `seed` and `champion`, and each iteration's.

Everything goes through `MlflowClient` with explicit run ids: MLflow's active run is local to a thread.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from experiments.mlflow_tracking.attempts_table import attempts_table
from experiments.mlflow_tracking.case_tables import SIDES, case_tables
from experiments.mlflow_tracking.case_traces import KeepCases, LogCase, case_traces
from experiments.mlflow_tracking.datasets import SplitData, log_datasets
from experiments.mlflow_tracking.description import NOTE, describe
from experiments.mlflow_tracking.metrics import (
    COSTS,
    VALIDATION,
    before_a_step,
    iteration_values,
    run_costs,
    shares,
    side_cost,
    side_scores,
    verdict_values,
)
from experiments.mlflow_tracking.outbox import OUTBOX, Outbox
from experiments.mlflow_tracking.prompt_versions import NameChampion, RegisterPrompt, accepted_reasons, prompt_name
from experiments.mlflow_tracking.store import PARENT, TrackingStore, in_words, is_refusal
from experiments.mlflow_tracking.writes import (
    EndRun,
    LogFiles,
    LogMetrics,
    LogParams,
    LogText,
    SetTag,
    StartRun,
    Write,
)
from experiments.runs.folder import ATTEMPTS, CONFIG, MLFLOW_KEY, PROMPTS, REPORT, STUDY, SUMMARY, RunFolder
from experiments.runs.seen_cases import SeenCase, worst_first
from experiments.runs.summary import SummaryMlflow
from optimizer.evaluation.scores import Score, SplitName
from optimizer.gating.verdict import Verdict
from optimizer.tuning.results import IterationRecord, LoopResult
from tracing.errors import ConfigError
from tracing.recording.credentials import without_credentials
from tracing.recording.redaction import Redaction, excerpt
from tracing.systems.prompts import Candidate

if TYPE_CHECKING:
    from attribution.signals import Signal

SEED, CHAMPION = SIDES

PARAM_LIMIT = 500
"""Longest value kept as a parameter; settings are short, and prompts are not parameters."""

FINISH_SECONDS = 120.0
"""How long the end of a run waits for MLflow; what is not written by then stays in the outbox."""

SEND_SECONDS = 3600.0
"""Time limit of `memtune mlflow send`, generous because its user waits for nothing else."""


def store_file(home: Path) -> Path:
    """The default store: a sqlite file under the home."""
    return (home / "mlflow.db").resolve()


def store_uri(home: Path) -> str:
    """The URI of the default store."""
    return f"sqlite:///{store_file(home)}"


class MlflowRun:
    """An observer that records one experiment in MLflow.

    A store that fails or hangs neither ends nor blocks an experiment: what it did not take waits in the run's folder
    (`outbox`), which has everything else.

    Args:
        outbox: sends the writes to the store.
        system: name of the memory system, for its prompts' names in the registry.
        seed: the prompts the run starts from.
        folder: of the run.
        clock: gives the time of points, in seconds since the epoch.
        datasets: the splits it works on.
        resumed: whether points may exist already.
    """

    def __init__(
        self,
        outbox: Outbox,
        system: str,
        seed: Candidate,
        folder: RunFolder,
        clock: Callable[[], float] = time,
        *,
        datasets: tuple[SplitData, ...] = (),
        resumed: bool = False,
    ) -> None:
        self._resumed = resumed
        self._outbox, self._system, self._seed, self._folder, self._clock = outbox, system, seed, folder, clock
        self._datasets = datasets
        self._open: dict[str, bool] = {}
        self._blamed: set[int] = set()
        self._iterations: list[IterationRecord] = []
        self._curves: dict[str, float] = {}
        self._stands = False
        self._spent = dict.fromkeys(COSTS, 0)

    @classmethod
    def start(
        cls,
        *,
        uri: str | None,
        experiment: str,
        home: Path,
        folder: RunFolder,
        system: str,
        seed: Candidate,
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
        for noisy in ("mlflow.store.db.utils", "alembic"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        home.mkdir(parents=True, exist_ok=True)
        used = uri or store_uri(home)
        if (folder.path / OUTBOX).exists():
            outbox = Outbox.load(folder, uri=used)
        else:
            key = (run_key(folder) if resumed else None) or uuid4().hex
            folder.write(MLFLOW_KEY, key)
            outbox = Outbox(TrackingStore(used, experiment, key), folder)
        store = outbox.store
        try:
            _ = store.client  # which may have to be made, and takes its time
            with store.bounded():
                _ = store.experiment_id
        except ConfigError:
            raise
        except Exception as error:  # whatever a store raises
            passing = store.remote or isinstance(error, TimeoutError)
            if not passing or is_refusal(error):
                reason, shown = in_words(error, store.uri), without_credentials(store.uri)
                raise ConfigError(f"tracking.uri: {shown}: {reason}; give the URI of a working MLflow store") from None
            outbox.keep_off(error)
        self = cls(outbox, system, seed, folder, clock, datasets=datasets, resumed=resumed)
        values = {name: excerpt(str(value), PARAM_LIMIT) for name, value in params.items()}
        tags = {"mlflow.source.name": "memtune run"}
        outbox.send(StartRun(title=folder.id, moment=self._now(), tags=tags), LogParams(values=values))
        outbox.send(
            *log_datasets(datasets), *(self._version(name, text, f"seed of {system}") for name, text in seed.items())
        )
        return self

    @property
    def link(self) -> SummaryMlflow | None:
        """Where the run is; None until the store has taken its start."""
        return link_of(self._outbox.store)

    @property
    def problems(self) -> list[str]:
        """What MLflow has not received, in words."""
        found = list(self._outbox.refused)
        if self._outbox.waiting:
            why = f" ({self._outbox.trouble})" if self._outbox.trouble else ""
            remedy = f"`memtune mlflow send {self._folder.named}` sends them"
            found.insert(0, f"{self._outbox.waiting} writes wait{why}; {remedy}")
        return found

    def baseline(self, split: SplitName, score: Score) -> None:
        self._metrics(self._side_run(SEED), side_scores(split, score), step=0)
        if split == "validation":
            self._curve({VALIDATION: score.score}, step=0)
        else:
            self._metrics(PARENT, {f"{split}/seed": score.score}, step=0)

    def blame(self, iteration: int, signals: Sequence[Signal]) -> None:
        rows = [
            {
                "operation": signal.operation,
                "prompt": signal.prompt,
                "share": signal.share,
                "share_ci": list(signal.share_ci),
                "failures": signal.failures,
                "loss": signal.loss,
                "error_types": dict(signal.error_types),
                "fixable": signal.fixable,
                "cases": list(signal.cases),
            }
            for signal in signals
        ]
        nested = self._iteration_run(iteration)
        self._metrics(nested, shares(signals), step=iteration)
        self._curve(shares(signals), step=iteration)
        self._blamed.add(iteration)
        text = json.dumps({"signals": rows}, indent=2, ensure_ascii=False)
        self._outbox.send(LogText(run=nested, path="blame.json", text=text))

    def iteration(self, record: IterationRecord) -> None:
        self._iterations.append(record)
        cost = {name: getattr(record, name) for name in COSTS}
        self._spent = {name: self._spent[name] + value for name, value in cost.items()}
        metrics = iteration_values(record, blamed=record.n in self._blamed)
        nested = self._iteration_run(record.n)
        own = {f"cost/{name}": value for name, value in cost.items()}
        self._metrics(nested, metrics | own | {"proposals": record.proposals}, step=record.n)
        self._curve(metrics | {f"cost/{name}_so_far": value for name, value in self._spent.items()}, step=record.n)
        tags = {"accepted": str(record.accepted).lower(), "edited": ", ".join(record.edited)}
        tags |= {f"settings.{name}": f"{each.before} → {each.after}" for name, each in record.changed.items()}
        if record.optimizer is not None:
            tags["optimizer"] = record.optimizer
        self._outbox.send(*(SetTag(run=nested, key=key, value=value) for key, value in tags.items()))
        champion = record.champion or {}
        texts: list[Write] = [
            LogText(run=nested, path=f"prompts/champion/{name}.txt", text=text) for name, text in champion.items()
        ]
        versions = [self._version(name, champion[name], reason) for name, reason in accepted_reasons(record).items()]
        if record.edit is not None:
            edit = json.dumps(Redaction().value(asdict(record.edit)), indent=2, ensure_ascii=False)
            texts.append(LogText(run=nested, path="edit.json", text=edit))
        if record.settings:
            tried = json.dumps([asdict(each) for each in record.settings], indent=2, ensure_ascii=False)
            texts.append(LogText(run=nested, path="settings.json", text=tried))
        if record.attempts:
            texts.append(attempts_table(self._iterations))
        self._outbox.send(*texts, *versions)
        self._end(nested, "FINISHED")

    def verdict(self, verdict: Verdict) -> None:
        self._metrics(PARENT, verdict_values(verdict), step=0)
        self._outbox.send(SetTag(key="verdict", value=verdict.verdict))
        alone = verdict.prompts_alone
        # Texts that lose without the settings they were tuned with are no champion of their name.
        self._stands = "regressed" not in (verdict.verdict, alone.verdict if alone is not None else None)

    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        """Progress is not recorded."""

    def cases(
        self, seed: Sequence[SeenCase], champion: Sequence[SeenCase], *, metric: str, method: str, most: int
    ) -> None:
        """Record the cases of seed and champion as tables, and `most` of each side's as traces, wrong answers first.

        Traces are in the run of their side. If the champion is the seed, only the seed has them. Those that a resumed
        run has of an earlier champion are deleted.
        """
        self._outbox.send(*case_tables(seed, champion))
        self._side_run(SEED)
        self._outbox.send(*case_traces(SEED, worst_first(seed)[:most], metric, method))
        traces: list[LogCase] = []
        if champion != seed:
            self._side_run(CHAMPION)
            traces += case_traces(CHAMPION, worst_first(champion)[:most], metric, method)
        self._outbox.send(KeepCases(run=CHAMPION, titles=tuple(each.title for each in traces)), *traces)

    def finish(self, result: LoopResult, *, status: str = "FINISHED") -> None:
        """Record the champion and the folder's files, and end the run with `status` (FINISHED, KILLED or FAILED)."""
        for split, score in result.champion.items():
            if split != "validation":  # whose curve ends with it
                self._metrics(PARENT, {f"{split}/champion": score.score}, step=0)
        self._metrics(PARENT, run_costs(result), step=0)
        if result.baseline:
            self._metrics(self._side_run(SEED), side_cost(result, SEED), step=0)
        if result.champion and (result.champion_candidate != self._seed or result.settings):
            run = self._side_run(CHAMPION)
            for split, score in result.champion.items():
                self._metrics(run, side_scores(split, score), step=0)
            self._metrics(run, side_cost(result, CHAMPION), step=0)
        note = describe(self._folder.summary(), self._seed, result.champion_candidate)
        self._outbox.send(SetTag(key=NOTE, value=note))
        changed = {f"settings.{name}": f"{each.before} → {each.after}" for name, each in result.settings.items()}
        self._outbox.send(*(SetTag(key=key, value=value) for key, value in changed.items()))
        names = [name for name in (REPORT, SUMMARY, CONFIG, ATTEMPTS, STUDY) if (self._folder.path / name).is_file()]
        self._outbox.send(SetTag(key="stopped", value=result.stopped), *(LogFiles(path=n) for n in (*names, PROMPTS)))
        # A run that was stopped before its test may be resumed, and its champion may lose.
        for name, text in (result.champion_candidate if self._stands else self._seed).items():
            better = text != self._seed.get(name)
            self._outbox.send(NameChampion(name=prompt_name(self._system, name), text=text, better=better))
        self._end_all(status)

    def leave(self, stopped: str, *, status: str) -> None:
        """End the run with what it had before it was resumed; why it ended this time is all that is new."""
        self._outbox.send(SetTag(key="stopped", value=stopped), LogFiles(path=SUMMARY))
        self._end_all(status)

    def _version(self, prompt: str, text: str, message: str) -> RegisterPrompt:
        tags = {"memtune.run": self._folder.id, "memtune.system": self._system}
        return RegisterPrompt(name=prompt_name(self._system, prompt), text=text, message=message, tags=tags)

    def _iteration_run(self, iteration: int) -> str:
        return self._nested_run(f"iteration {iteration}", {"iteration": str(iteration)})

    def _side_run(self, side: str) -> str:
        return self._nested_run(side, {"memtune.side": side}, self._datasets)

    def _nested_run(self, name: str, tags: Mapping[str, str], data: tuple[SplitData, ...] = ()) -> str:
        if name not in self._open:
            self._open[name] = True
            start = StartRun(run=name, title=name, moment=self._now(), tags=tags)
            self._outbox.send(start, *log_datasets(data, name))
        return name

    def _end_all(self, status: str) -> None:
        left = [name for name, still in self._open.items() if still]
        for run in (*left, PARENT):
            self._end(run, status)
        if self._outbox.waiting:
            self._outbox.flush(seconds=FINISH_SECONDS)

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


def run_key(folder: RunFolder) -> str | None:
    """The key that identifies the run among all others; None if it is missing or damaged."""
    path = folder.path / MLFLOW_KEY
    key = path.read_text(errors="replace") if path.is_file() else ""
    return key if re.fullmatch("[0-9a-f]{32}", key) else None


def link_of(store: TrackingStore) -> SummaryMlflow | None:
    """Where a store keeps the parent run; None if it was not started or found there."""
    run = store.known_run()
    if run is None:
        return None
    return SummaryMlflow(tracking_uri=without_credentials(store.uri), experiment_id=store.experiment_id, run_id=run)
