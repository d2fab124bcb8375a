"""A run in MLflow: one parent run, a nested run for each iteration, and every curve on the parent too.

Everything goes through `MlflowClient` with explicit run ids: MLflow's active run is local to a thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from experiments.folder import ATTEMPTS, CONFIG, PROMPTS, REPORT, SUMMARY, RunFolder
from experiments.summary import SummaryMlflow
from optimizer.results import IterationRecord, LoopResult, Score, SplitName, Verdict
from tracing.errors import ConfigError
from tracing.systems.prompts import Candidate

if TYPE_CHECKING:
    from attribution.signals import Signal

PARAM_LIMIT = 500
"""Longest value kept as a parameter; settings are short, and a prompt is never one."""


def store_uri(home: Path) -> str:
    """The default store: a sqlite file under the home."""
    return f"sqlite:///{(home / 'mlflow.db').resolve()}"


def artifact_root(home: Path) -> Path:
    """Where the default store keeps artifacts."""
    return (home / "artifacts").resolve()


class MlflowRun:
    """An observer that records one experiment in MLflow.

    Trouble with the store after the start does not end an experiment that took hours: what could not be recorded is
    counted in `problems`, and the run's folder has it all.
    """

    def __init__(
        self, client: Any, experiment_id: str, run_id: str, uri: str, clock: Callable[[], float] = time
    ) -> None:
        self._client, self._experiment, self._run, self._clock = client, experiment_id, run_id, clock
        self._nested: dict[int, str] = {}
        self._blamed: set[int] = set()
        self._spent = {"calls_made": 0, "calls_cached": 0, "tokens": 0}
        self.link = SummaryMlflow(tracking_uri=without_credentials(uri), experiment_id=experiment_id, run_id=run_id)
        self.problems: list[str] = []

    @classmethod
    def start(
        cls,
        *,
        uri: str | None,
        experiment: str,
        home: Path,
        name: str,
        params: Mapping[str, Any],
        clock: Callable[[], float] = time,
    ) -> MlflowRun:
        """Open the store, making it and the experiment where they do not exist, and start the parent run.

        Raises:
            ConfigError: the store cannot be used.
        """
        from mlflow.entities import Param
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient

        for noisy in ("mlflow.store.db.utils", "alembic"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        home.mkdir(parents=True, exist_ok=True)
        used = uri or store_uri(home)
        try:
            client = MlflowClient(tracking_uri=used)
            found = client.get_experiment_by_name(experiment)
            if found is None:
                root = artifact_root(home).as_uri() if uri is None else None
                experiment_id = client.create_experiment(experiment, artifact_location=root)
            elif found.lifecycle_stage != "active":
                raise ConfigError(
                    f"tracking.experiment: {experiment!r} is deleted in MLflow; restore it there or give another name"
                )
            else:
                experiment_id = found.experiment_id
            tags = {"mlflow.source.name": "memtune run"}
            run = client.create_run(experiment_id, run_name=name, tags=tags, start_time=int(clock() * 1000))
            values = [Param(key, str(value)[:PARAM_LIMIT]) for key, value in params.items()]
            client.log_batch(run.info.run_id, params=values)
        except (MlflowException, OSError) as error:
            shown = without_credentials(used)
            reason = " ".join(str(error).replace(used, shown).split())[:300]
            password = urlsplit(used).password
            reason = reason.replace(password, "[password]") if password else reason
            raise ConfigError(f"tracking.uri: {shown}: {reason}; give the URI of a working MLflow store") from None
        return cls(client, experiment_id, run.info.run_id, used, clock)

    def baseline(self, split: SplitName, score: Score) -> None:
        self._metrics(self._run, _score_metrics(split, score), step=0)

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
        shares = {f"blame/{signal.operation}": signal.share for signal in signals}
        nested = self._iteration_run(iteration)
        for run in (self._run, nested):
            self._metrics(run, shares, step=iteration)
        self._blamed.add(iteration)
        self._safely(lambda: self._client.log_dict(nested, {"signals": rows}, "blame.json"))

    def iteration(self, record: IterationRecord) -> None:
        cost = {"calls_made": record.calls_made, "calls_cached": record.calls_cached, "tokens": record.tokens}
        self._spent = {name: self._spent[name] + value for name, value in cost.items()}
        metrics: dict[str, float] = {"val/score": record.val_score}
        metrics |= {f"cost/{name}": value for name, value in cost.items()}
        if record.n not in self._blamed:
            # Nothing was attributed anew, since the champion is the same; the curve goes on level.
            metrics |= {f"blame/{name}": blame.share for name, blame in record.blame.items()}
        nested = self._iteration_run(record.n)
        self._metrics(nested, metrics | {"proposals": record.proposals}, step=record.n)
        self._metrics(
            self._run, metrics | {f"cost/{name}_so_far": value for name, value in self._spent.items()}, step=record.n
        )
        tags = {"accepted": str(record.accepted).lower(), "edited": ", ".join(record.edited)}
        for key, value in tags.items():
            self._tag(nested, key, value)
        if record.champion is not None:
            self._prompts(nested, "prompts/champion", record.champion)
        self._end(nested, "FINISHED")

    def verdict(self, verdict: Verdict) -> None:
        self._metrics(
            self._run,
            {"test/delta": verdict.delta, "test/p_value": verdict.p_value, "test/power": verdict.power},
            step=0,
        )
        self._tag(self._run, "verdict", verdict.verdict)

    def progress(self, phase: str, done: int, total: int) -> None:
        """Not a matter of record."""

    def finish(self, result: LoopResult, folder: RunFolder, *, status: str = "FINISHED") -> None:
        """Record the champion and the folder's files, and end the run with `status` (FINISHED, KILLED or FAILED)."""
        last = max((record.n for record in result.iterations), default=0) + 1
        for split, score in result.champion.items():
            self._metrics(self._run, _score_metrics(split, score), step=last)
        calls = result.calls
        self._metrics(
            self._run,
            {
                "cost/run_calls_made": calls.made,
                "cost/run_calls_cached": calls.cached,
                "cost/run_calls_without_reuse": calls.without_reuse,
                **{f"cost/tokens_per_question_{side}": value for side, value in result.tokens_per_question.items()},
            },
            step=0,
        )
        self._tag(self._run, "stopped", result.stopped)
        for name in (REPORT, SUMMARY, CONFIG, ATTEMPTS):
            if (folder.path / name).is_file():
                self._safely(lambda name=name: self._client.log_artifact(self._run, str(folder.path / name)))  # type: ignore[misc]
        self._safely(lambda: self._client.log_artifacts(self._run, str(folder.path / PROMPTS), PROMPTS))
        for nested in self._nested.values():
            self._end(nested, status, only_running=True)
        self._end(self._run, status)

    def _iteration_run(self, iteration: int) -> str:
        if iteration not in self._nested:
            tags = {"mlflow.parentRunId": self._run, "iteration": str(iteration)}
            name = f"iteration {iteration}"
            made = self._safely(
                lambda: self._client.create_run(
                    self._experiment, run_name=name, tags=tags, start_time=int(self._clock() * 1000)
                )
            )
            self._nested[iteration] = made.info.run_id if made else ""
        return self._nested[iteration]

    def _metrics(self, run: str, values: Mapping[str, float], *, step: int) -> None:
        from mlflow.entities import Metric

        moment = int(self._clock() * 1000)
        metrics = [Metric(key, float(value), moment, step) for key, value in values.items()]
        self._safely(lambda: self._client.log_batch(run, metrics=metrics))

    def _tag(self, run: str, key: str, value: str) -> None:
        self._safely(lambda: self._client.set_tag(run, key, value))

    def _prompts(self, run: str, folder: str, candidate: Candidate) -> None:
        for name, text in candidate.items():
            self._safely(lambda name=name, text=text: self._client.log_text(run, text, f"{folder}/{name}.txt"))  # type: ignore[misc]

    def _end(self, run: str, status: str, *, only_running: bool = False) -> None:
        def end() -> None:
            if not only_running or self._client.get_run(run).info.status == "RUNNING":
                self._client.set_terminated(run, status=status, end_time=int(self._clock() * 1000))

        self._safely(end)

    def _safely(self, record: Callable[[], Any]) -> Any:
        try:
            return record()
        except Exception as error:  # whatever a store raises
            self.problems.append(" ".join(str(error).split())[:300])
            return None


def params_of(config: Any, *, prefix: str = "") -> dict[str, Any]:
    """The settings as flat `key.path` → value, without keys and without unset values."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if key == "api_key" or value is None:
            continue
        if isinstance(value, Mapping):
            flat |= params_of(value, prefix=f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def without_credentials(uri: str) -> str:
    """`uri` without the user and password it may carry."""
    with suppress(ValueError):
        parts = urlsplit(uri)
        if parts.username or parts.password:
            return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return uri


def _score_metrics(split: SplitName, score: Score) -> dict[str, float]:
    return {f"{split}/{name}": getattr(score, name) for name in ("score", "em", "f1", "contains")}
