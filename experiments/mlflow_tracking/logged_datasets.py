"""The data set of a run in MLflow: as inputs of its runs, a data set for each split, recognized by the digest of its
conversations; and the questions of its test as an evaluation data set, for `mlflow.genai.evaluate`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from experiments.mlflow_tracking.run_artifacts import EXPECTED
from experiments.mlflow_tracking.store import PARENT, TrackingStore
from experiments.mlflow_tracking.writes import Write, batches
from optimizer.evaluation.scores import Splits
from tracing.strict_models import StrictModel
from tracing.systems.conversations import Question

CONTEXT = "mlflow.data.context"
"""The tag of an input by which MLflow's UI says what a data set was used for."""

_USES = {"train": "training", "validation": "validation", "test": "test"}
_SCHEMA = {
    "mlflow_colspec": [
        {"name": name, "type": "string", "required": True} for name in ("conversation", "question", "answers")
    ]
}
_DIGITS = 16
_DIGEST = "memtune_digest"
"""Tag of an evaluation data set: the digest of its conversations. MLflow finds no tag whose name has a full stop."""
_BATCH = 100


class SplitData(StrictModel):
    """A split: the data set's name or path, its digest, and how many conversations and questions it has."""

    name: str
    use: str
    source: str
    digest: str
    conversations: int
    questions: int


class LogDatasets(Write):
    """The splits as inputs of a run; MLflow keeps a data set once, by its name and digest."""

    kind: Literal["datasets"] = "datasets"
    splits: tuple[SplitData, ...]

    def apply(self, store: TrackingStore, folder: Path) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        inputs = [
            DatasetInput(
                Dataset(
                    name=split.name,
                    digest=split.digest,
                    source_type="local",
                    source=json.dumps({"uri": split.source}),
                    schema=json.dumps(_SCHEMA),
                    profile=json.dumps({"num_rows": split.questions, "num_conversations": split.conversations}),
                ),
                [InputTag(CONTEXT, split.use)],
            )
            for split in self.splits
        ]
        store.client.log_inputs(store.run_id(self.run), datasets=inputs)


def split_data(name: str, splits: Splits) -> tuple[SplitData, ...]:
    """What MLflow is told of a data set; `name` is the configuration's, a known data set or a path."""
    stem = Path(name).stem or name
    split_datasets = []
    for split, conversations in splits.named().items():
        digest = sha256()
        for conversation in conversations:
            digest.update(conversation.model_dump_json().encode("utf-8", "replace") + b"\n")
        split_datasets.append(
            SplitData(
                name=f"{stem} {_USES[split]}",
                use=_USES[split],
                source=name,
                digest=digest.hexdigest()[:_DIGITS],
                conversations=len(conversations),
                questions=sum(len(conversation.questions) for conversation in conversations),
            )
        )
    return tuple(split_datasets)


def log_datasets(splits: tuple[SplitData, ...], run: str = PARENT) -> list[LogDatasets]:
    """The write, if there are splits."""
    return [LogDatasets(run=run, splits=splits)] if splits else []


class LogEvaluationData(Write):
    """Records of an evaluation data set of the experiment, which is made if there is none with this digest."""

    kind: Literal["evaluation data"] = "evaluation data"
    name: str
    digest: str
    records: tuple[dict[str, Any], ...]
    total: int

    def apply(self, store: TrackingStore, folder: Path) -> None:
        with store.as_default():
            where = store.experiment_id
            matches = store.client.search_datasets(
                experiment_ids=[where], filter_string=f"tags.{_DIGEST} = '{self.digest}'", max_results=1
            )
            data = matches[0] if matches else None
            if data is None:
                tags = {_DIGEST: self.digest}
                data = store.client.create_dataset(name=self.name, experiment_id=[where], tags=tags)
            if json.loads(data.profile or "{}").get("num_records", 0) < self.total:
                data.merge_records([dict(record) for record in self.records])


def evaluation_data(split: SplitData, questions: Sequence[tuple[str, Question]]) -> Iterator[LogEvaluationData]:
    """A split's questions, each after the id of its conversation; the inputs are those of their traces."""
    records = [
        {
            "inputs": {"question": question.question, "conversation": conversation},
            "expectations": {EXPECTED: question.answers[0] if len(question.answers) == 1 else list(question.answers)},
        }
        for conversation, question in questions
    ]
    # What is put twice in a conversation is a single record.
    total = len({json.dumps(record["inputs"], sort_keys=True) for record in records})
    for part in batches(records, _BATCH):
        yield LogEvaluationData(name=split.name, digest=split.digest, records=part, total=total)
