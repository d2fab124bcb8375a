"""Annotated graphs (MemEval, MemTraceBench) as conversations: the dialogue they record, and the labelled questions.

The labels themselves are for `memtune bench attribution --suite PATH`, which reads the same files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from attribution.failures import case_of
from attribution.recordings import recording_of
from experiments.data.reading import FileReader, Ids, Reading
from tracing.errors import TraceError
from tracing.interchange import smartcomment
from tracing.systems.conversations import Conversation

MEMEVAL, MEMTRACEBENCH = "memeval", "memtracebench"

_REMEDY = "give a smartcomment file with data.annotations"


def read_labelled(path: Path, reading: Reading) -> Iterator[Conversation]:
    """A conversation of each annotated graph in a file or folder, with one question for each label.

    Raises:
        DataError: there is none, or one cannot be read.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not files:
        reading.problem(f"{path}: holds no graph; {_REMEDY}")
    ids = Ids(reading)
    for place, file in enumerate(files):
        reading.advanced(place, len(files))
        name = file.relative_to(path).with_suffix("").as_posix() if path.is_dir() else file.stem
        try:
            graph = smartcomment.load(file)
            recording = recording_of(graph, name)
        except TraceError as error:
            reading.unreadable(error, _REMEDY)
            continue
        questions = []
        for number, raw in enumerate(smartcomment.annotations_of(graph)):
            where = f"{file}: data.annotations.{number}"
            case = case_of(raw, recording, lambda problem, where=where: reading.problem(f"{where}.{problem}"))  # type: ignore[misc]
            if case is None:
                reading.problem(f"{where}: names no question and reply of the graph; correct query_id or prediction_id")
            elif not case.knows_answer:
                reading.left_out(name, "questions without a gold answer")
            elif ids.new("question", f"{name}/{case.question.id}", "query_id", where, where):
                questions.append(case.question.model_copy(update={"id": f"{name}/{case.question.id}"}))
        if not questions:
            reading.problem(f"{file}: data.annotations: has no label; {_REMEDY}")
            continue
        try:
            values = recording.conversation.model_dump() | {"questions": tuple(questions)}
            yield Conversation.model_validate(values)
        except ValidationError as error:
            reading.invalid(str(file), error, _REMEDY)


MEMEVAL_READER = FileReader(MEMEVAL, read_labelled)
MEMTRACEBENCH_READER = FileReader(MEMTRACEBENCH, read_labelled)
