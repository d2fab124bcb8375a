"""What users said of the answers in traces: rows of feedback beside the traces, and logs of complaints.

A row says of one answer whether it was right, and what would have been right if the user said so. All of a log are of
wrong ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attribution.failures import same_text
from experiments.data.dataset_reader import Reading
from experiments.data.own.moments import OptionalMoment
from experiments.data.own.tables import OptionalText, TextList, rows_in, rows_of
from tracing.errors import DataError
from tracing.files.file_kinds import likeness
from tracing.graph.execution_graph import ExecutionGraph
from tracing.strict_models import StrictModel

FEEDBACK = "feedback"
_MOST_LISTED = 5
_CLOCKS_APART = 60.0
"""Seconds by which the clock of a log may be behind that of the traces."""
ENDINGS = (".json", ".jsonl", ".pb")
"""Of the names of traces."""


class FeedbackRow(StrictModel):
    """What a user said of an answer.

    Attributes:
        trace: name of the trace file, with or without its ending, relative to the folder.
        right: whether the answer was right.
        question: as it was asked, or its name in the trace; may be left out where the trace has one answer.
        reply: as it was given; may be left out where the question has one reply.
        answers: what would have been right; empty if nobody said.
        time: when the user said so, in epoch seconds.
    """

    trace: str
    right: bool
    question: str = ""
    reply: OptionalText = ""
    answers: TextList = ()
    time: OptionalMoment = None


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer that a trace records, with its own id, and the name of the question there, which others may share.

    Of memtune's traces, `prediction` is the id of the reply's variable. `time` is when it was given, in epoch seconds.
    """

    id: str
    name: str
    question: str
    reply: str
    prediction: str = ""
    user: str = ""
    time: float = 0.0

    def is_in(self, graph: ExecutionGraph) -> bool:
        """Whether a trace records it: the reply's variable or the call."""
        return self.prediction in graph.variables or self.id in graph.operations


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
    files = (file for file in sorted(folder.rglob("*")) if file.suffix in ENDINGS and file.is_file())
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


class ComplaintRow(StrictModel):
    """One complaint: as `FeedbackRow`, but its trace may be left out where question, reply, user or time tell it.

    The trace is a path relative to the log's folder, or a name with or without its ending. The answer is the last one
    that fits and was given before the time.
    """

    question: str = ""
    reply: OptionalText = ""
    answers: TextList = ()
    trace: str = ""
    user: OptionalText = ""
    time: OptionalMoment = None


Answers = Callable[[Path], Sequence[RecordedAnswer]]
"""Gives the answers in a trace."""


def complaints_in(
    log: Path, traces: Sequence[Path], answers: Answers, reading: Reading
) -> Mapping[Path, list[tuple[str, FeedbackRow]]]:
    """The complaints of a log (`.csv` or `.jsonl`) by the trace of these that they are about, each with its place.

    The answers of traces are looked at only for rows that do not tell their trace, or tell a user or a time.
    """
    looks = likeness(log, "complaints", "feedback", "json", "table", "text", "broken", "empty")
    if looks:
        raise DataError(f"{log}: is not a log of complaints; {looks}")
    complaints: dict[Path, list[tuple[str, FeedbackRow]]] = defaultdict(list)
    named = _by_name(traces)
    for where, _, row in rows_of(log, ComplaintRow, reading):
        if not row.question and not row.reply:
            reading.problem(f"{where}: question: is missing; give the question or the reply, as it was recorded")
            continue
        trace: Path | str
        question, fitting = row.question, list(traces)
        if row.trace:
            at_path = named.get((log.parent / row.trace).resolve(), ())
            fitting = list(dict.fromkeys((*at_path, *named.get(row.trace, ()))))
        if len(fitting) == 1 and not row.user and row.time is None:
            trace = fitting[0]
        else:
            place = _place_of(row, fitting, answers)
            trace, question = place if isinstance(place, tuple) else (place, question)
        if isinstance(trace, str):
            reading.problem(f"{where}: {trace}")
            continue
        complaints[trace].append(
            (where, FeedbackRow(right=False, **row.model_dump(exclude={"user"}) | {"question": question}))
        )
    return complaints


def _place_of(row: ComplaintRow, traces: Sequence[Path], answers: Answers) -> tuple[Path, str] | str:
    """The trace of the answer that a complaint followed, and the id of the answer there; or what is wrong."""
    if not traces:
        return f"trace: {row.trace!r} is none of the traces given; correct it, or leave it out"
    fitting = [
        (answer.time, trace, answer)
        for trace in traces
        for answer in answers(trace)
        if (not row.question or row.question in (answer.id, answer.name) or same_text(row.question, answer.question))
        and (not row.reply or same_text(row.reply, answer.reply))
        and (not row.user or row.user == answer.user or answer.user.endswith(f"/{row.user}"))
    ]
    before = [answer for answer in fitting if row.time is None or answer[0] <= row.time + _CLOCKS_APART]
    if not before:
        late = f", and {len(fitting)} after it" if fitting else ""
        when = " before its time" if row.time is not None else ""
        return f"question: {len(traces)} traces have no such answer{when}{late}; give it as it was recorded"
    if row.time is None and len({trace for _, trace, _ in before}) > 1:
        return f"trace: {len(before)} answers in several traces fit; add trace, time or user"
    _, trace, answer = max(before, key=lambda place: place[0])
    return trace, answer.id


def _by_name(traces: Sequence[Path]) -> Mapping[Path | str, list[Path]]:
    """The traces by their paths, by their names, and by these without an ending."""
    named: dict[Path | str, list[Path]] = defaultdict(list)
    for trace in traces:
        keys: set[Path | str] = {trace.resolve(), trace.name, *map(trace.name.removesuffix, ENDINGS)}
        for name in keys:
            named[name].append(trace)
    return named
