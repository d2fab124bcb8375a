"""What users said of the answers in traces: rows of feedback beside the traces, and logs of complaints.

A row says of one answer whether it was right, and what would have been right if the user said so. All of a log are of
wrong ones.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from attribution.failures import same_text
from experiments.data.dataset_reader import Reading
from experiments.data.own.tables import OptionalText, TextList, rows_in, rows_of
from tracing.errors import DataError
from tracing.files.file_kinds import likeness

FEEDBACK = "feedback"
_MOST_LISTED = 5
ENDINGS = (".json", ".jsonl")
"""Of the names of traces."""


class FeedbackRow(BaseModel):
    """What a user said of an answer.

    Attributes:
        trace: name of the trace file, with or without its ending, relative to the folder.
        right: whether the answer was right.
        question: as it was asked, or its name in the trace; may be left out where the trace has one answer.
        reply: as it was given; may be left out where the question has one reply.
        answers: what would have been right; empty if nobody said.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    trace: str
    right: bool
    question: str = ""
    reply: OptionalText = ""
    answers: TextList = ()


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer that a trace records, with its own id, and the name of the question there, which others may share."""

    id: str
    name: str
    question: str
    reply: str


class Feedback:
    """The feedback in a folder of traces, by trace; `reading` receives the problems of its rows."""

    def __init__(self, folder: Path, reading: Reading) -> None:
        self._folder, self._reading = folder, reading
        self._rows: dict[str, list[tuple[str, FeedbackRow]]] = defaultdict(list)
        for where, _, row in rows_in(folder, FEEDBACK, FeedbackRow, reading):
            self._rows[_bare(row.trace)].append((where, row))

    def __bool__(self) -> bool:
        return bool(self._rows)

    def on(self, trace: Path) -> Sequence[tuple[str, FeedbackRow]]:
        """The rows about a trace of the folder, each with its place."""
        return self._rows.get(_name_of(trace, self._folder), ())

    def unknown(self, traces: Sequence[Path]) -> None:
        """Report the rows about traces that are not among these."""
        names = {_name_of(trace, self._folder) for trace in traces}
        for name, rows in self._rows.items():
            if name not in names:
                for where, _ in rows:
                    self._reading.problem(f"{where}: trace: {name!r} is not a trace in {self._folder}; correct it")


def traces_in(folder: Path) -> list[Path]:
    """The traces in and under a folder, without the feedback."""
    files = (file for file in sorted(folder.rglob("*.json*")) if file.is_file() and file.suffix in ENDINGS)
    return [file for file in files if not (file.parent == folder and file.stem == FEEDBACK)]


def has_feedback(folder: Path) -> bool:
    """Whether a folder has a file of feedback."""
    return any((folder / f"{FEEDBACK}.{ending}").is_file() for ending in ("csv", "jsonl"))


def matching_answer(question: str, reply: str, answers: Sequence[RecordedAnswer]) -> RecordedAnswer | str:
    """The answer to a question with this reply, the last of equal ones; or what is wrong. Both may be empty."""
    same_question = [
        answer
        for answer in answers
        if not question or question in (answer.id, answer.name) or same_text(question, answer.question)
    ]
    matches = [answer for answer in same_question if not reply or same_text(reply, answer.reply)]
    last = matches[-1] if matches else None
    if last is not None and all(
        same_text(answer.question, last.question) and same_text(answer.reply, last.reply) for answer in matches
    ):
        return last
    if same_question and not matches:
        replies = _quoted_list(answer.reply for answer in same_question)
        return f"reply: the trace has no such answer; it was answered with: {replies}"
    if not matches:
        questions = _quoted_list(answer.question for answer in answers)
        return f"question: the trace has no such answer; questions in it are: {questions}"
    more = "question" if not question else "reply"
    return f"{more}: {len(matches)} answers of the trace fit; add {'the ' + more}, as it was recorded"


def _quoted_list(texts: Iterable[str]) -> str:
    return "; ".join(list(dict.fromkeys(map(repr, texts)))[:_MOST_LISTED]) or "none"


def _bare(name: str) -> str:
    return next((name.removesuffix(ending) for ending in ENDINGS[::-1] if name.endswith(ending)), name)


def _name_of(trace: Path, folder: Path) -> str:
    return _bare(trace.relative_to(folder).as_posix())


class ComplaintRow(BaseModel):
    """One complaint: as `FeedbackRow`, but its question must be there, and its trace may be left out if there is one.

    The trace is a path relative to the log's folder, or a name with or without its ending.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    reply: OptionalText = ""
    answers: TextList = ()
    trace: str = ""


def complaints_in(log: Path, traces: Sequence[Path], reading: Reading) -> Mapping[Path, list[tuple[str, FeedbackRow]]]:
    """The complaints of a log (`.csv` or `.jsonl`) by the trace of these that they are about, each with its place."""
    looks = likeness(log, "complaints", "feedback", "json", "table", "text", "broken", "empty")
    if looks:
        raise DataError(f"{log}: is not a log of complaints; {looks}")
    complaints: dict[Path, list[tuple[str, FeedbackRow]]] = defaultdict(list)
    for where, _, row in rows_of(log, ComplaintRow, reading):
        matches = [trace for trace in traces if _names_trace(row.trace, trace, log.parent)]
        if len(matches) != 1:
            remedy = "name one of the traces given" if row.trace else "add it, since there is more than one trace"
            reading.problem(f"{where}: trace: {row.trace!r} fits {len(matches)} of {len(traces)} traces; {remedy}")
            continue
        complaints[matches[0]].append((where, FeedbackRow(right=False, **row.model_dump())))
    return complaints


def _names_trace(name: str, trace: Path, folder: Path) -> bool:
    if not name or (folder / name).resolve() == trace.resolve():
        return True
    if os.sep in name:
        return False
    return name in (trace.name, *(trace.name.removesuffix(ending) for ending in ENDINGS))
