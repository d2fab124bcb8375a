"""What a run writes to MLflow, as data that can wait in a file and be applied twice; others are with their subject."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from experiments.mlflow_tracking.store import PARENT, TrackingStore
from tracing.recording.redaction import redact
from tracing.strict_models import StrictModel

_TABLES = "mlflow.loggedArtifacts"

_Element = TypeVar("_Element")


class Write(StrictModel):
    """One write; `run` names the run it goes to (`TrackingStore.run_id`)."""

    run: str = PARENT

    @property
    def size(self) -> int:
        """How much it is among others, for progress."""
        return 1

    def apply(self, store: TrackingStore, folder: Path) -> None:
        """Write it, unless the store has it already. `folder` is the run's, for what is written from files.

        Raises:
            Exception: whatever the store raises; `store.is_refusal` says whether it is final.
        """
        raise NotImplementedError


class StartRun(Write):
    """Start a run, or resume one; `moment` is in milliseconds. Its name says when the run began (`NameRun`)."""

    kind: Literal["start"] = "start"
    title: str
    moment: int
    tags: Mapping[str, str]

    def apply(self, store: TrackingStore, folder: Path) -> None:
        tags = dict(self.tags)
        if self.run != PARENT:
            tags["mlflow.parentRunId"] = store.run_id()
        begun = self.moment if self.run == PARENT else store.begun()
        store.start_run(self.run, _dated(self.title, begun), tags, self.moment)


class NameRun(Write):
    """Give a run another title; after it comes the time of day when the parent run began."""

    kind: Literal["name"] = "name"
    title: str

    def apply(self, store: TrackingStore, folder: Path) -> None:
        store.client.update_run(store.run_id(self.run), name=_dated(self.title, store.begun()))


class LogParams(Write):
    """Settings of a run. The store keeps the first value of each, even if a resumed run has a larger budget."""

    kind: Literal["params"] = "params"
    values: Mapping[str, str]

    def apply(self, store: TrackingStore, folder: Path) -> None:
        from mlflow.entities import Param

        run = store.run_id(self.run)
        there = store.client.get_run(run).data.params
        store.client.log_batch(run, params=[Param(*param) for param in self.values.items() if param[0] not in there])


class LogMetrics(Write):
    """Points of curves. A store identifies a point by name, step, time and value, so it holds each once.

    With `once` a point is left out if its curve has this value at this step at any time: a resumed run repeats its
    earlier steps. A step that a budget had cut short gets a second value.
    """

    kind: Literal["metrics"] = "metrics"
    values: Mapping[str, float]
    step: int
    moment: int
    once: bool = False

    def apply(self, store: TrackingStore, folder: Path) -> None:
        from mlflow.entities import Metric

        run = store.run_id(self.run)
        recorded = {key for key, value in self.values.items() if self.once and self._has(store, run, key, value)}
        points = [
            Metric(key, value, self.moment, self.step) for key, value in self.values.items() if key not in recorded
        ]
        store.client.log_batch(run, metrics=points)

    def _has(self, store: TrackingStore, run: str, key: str, value: float) -> bool:
        history = store.client.get_metric_history(run, key)
        return any((point.step, point.value) == (self.step, value) for point in history)


class SetTag(Write):
    """A tag of a run."""

    kind: Literal["tag"] = "tag"
    key: str
    value: str

    def apply(self, store: TrackingStore, folder: Path) -> None:
        store.client.set_tag(store.run_id(self.run), self.key, self.value)


class LogText(Write):
    """A text as an artifact."""

    kind: Literal["text"] = "text"
    path: str
    text: str

    def apply(self, store: TrackingStore, folder: Path) -> None:
        store.client.log_text(store.run_id(self.run), self.text, self.path)


class LogFiles(Write):
    """A file of the run's folder, or all texts of a folder in it, as artifacts of the same name."""

    kind: Literal["files"] = "files"
    path: str

    def apply(self, store: TrackingStore, folder: Path) -> None:
        run, source = store.run_id(self.run), folder / self.path
        if source.is_file():
            store.client.log_artifact(run, str(source))
        for text in sorted(source.rglob("*.txt")):
            # Prompts: the run's folder has them as they are sent.
            prompt_text = redact(text.read_bytes().decode())
            store.client.log_text(run, prompt_text, text.relative_to(folder).as_posix())


class LogTable(Write):
    """A table as an artifact that the UI shows as one: column → values.

    It is written in MLflow's own form, but as a whole: `log_table` appends, so applying it twice would duplicate rows.
    """

    kind: Literal["table"] = "table"
    path: str
    columns: Mapping[str, list[Any]]

    def apply(self, store: TrackingStore, folder: Path) -> None:
        run = store.run_id(self.run)
        rows = [list(row) for row in zip(*self.columns.values(), strict=True)]
        table = {"columns": list(self.columns), "data": rows}
        store.client.log_text(run, json.dumps(table, ensure_ascii=False), self.path)
        tables = json.loads(store.client.get_run(run).data.tags.get(_TABLES, "[]"))
        entry = {"path": self.path, "type": "table"}
        if entry not in tables:
            store.client.set_tag(run, _TABLES, json.dumps([*tables, entry]))


def batches(items: Sequence[_Element], size: int) -> Iterator[tuple[_Element, ...]]:
    """Parts of at most so many items: another process may have to wait for a write."""
    return (tuple(items[first : first + size]) for first in range(0, len(items), size))


def _dated(title: str, moment: int) -> str:
    return f"{title} · {datetime.fromtimestamp(moment / 1000):%H:%M}"


class EndRun(Write):
    """End a run with a status (FINISHED, KILLED or FAILED)."""

    kind: Literal["end"] = "end"
    status: str
    moment: int

    def apply(self, store: TrackingStore, folder: Path) -> None:
        store.client.set_terminated(store.run_id(self.run), status=self.status, end_time=self.moment)
