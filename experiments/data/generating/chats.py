"""The conversations that questions are generated from: any data set, or recorded traces, with logged complaints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from experiments.data.data_check import dataset_name_of
from experiments.data.dataset_reader import Reading
from experiments.data.datasets import CARDS, conversations_of
from experiments.data.generating.complaints import Objection
from experiments.data.own.feedback import (
    Feedback,
    FeedbackRow,
    RecordedAnswer,
    complaints_in,
    has_feedback,
    matching_answer,
    traces_in,
)
from experiments.data.own.traces import TRACES, TracedChat, answers_of, histories_in, trace_name
from tracing.errors import DataError
from tracing.files.file_kinds import MLFLOW, OTLP, SMARTCOMMENT, TRACE, kind_of
from tracing.systems.conversations import Conversation

_TRACE_KINDS = (TRACE, OTLP, MLFLOW, SMARTCOMMENT)


@dataclass(frozen=True, slots=True)
class Chats:
    """Conversations, and by their ids the complaints that a log has of answers in them."""

    conversations: Sequence[Conversation]
    complaints: Mapping[str, Sequence[Objection]] = field(default_factory=dict)


def open_chats(source: str, reading: Reading, *, dataset: str | None = None, log: Path | None = None) -> Chats:
    """As `read_chats`; `source` may also be the name of a data set that needs no path, such as `sample`."""
    if source in CARDS and CARDS[source].takes == "nothing" and not Path(source).exists():
        return Chats(_unsealed(conversations_of(source, None, reading)))
    return read_chats(Path(source), reading, dataset=dataset, log=log)


def _unsealed(conversations: Sequence[Conversation]) -> list[Conversation]:
    return [conversation for conversation in conversations if conversation.split != "sealed"]


def read_chats(path: Path, reading: Reading, *, dataset: str | None = None, log: Path | None = None) -> Chats:
    """The conversations in a file or folder, which is recognised by its content unless `dataset` says what it is.

    Of traces the dialogues count, whether there is feedback or not. Complaints are those of a `log`, else the answers
    that a folder's feedback calls wrong; with traces only.

    Raises:
        DataError: nothing of it can be read, or a log is given with something else than traces.
    """
    traces = _traces(path, log) if dataset in (None, TRACES) else []
    if not traces:
        if log is not None:
            raise DataError(f"--complaints {log}: is about answers in traces, and {path} holds none; leave it out")
        return Chats(_unsealed(conversations_of(dataset or dataset_name_of(path), path, reading)))
    rows: Mapping[Path, Sequence[tuple[str, FeedbackRow]]] = {}
    if log is not None:
        rows = complaints_in(log, traces, cache(answers_of), reading)
    elif path.is_dir() and has_feedback(path):
        feedback = Feedback(path, reading)
        rows = {trace: [row for row in feedback.on(trace) if not row[1].right] for trace in traces}
    return _read_traces(path, traces, rows, reading)


def _traces(path: Path, log: Path | None) -> list[Path]:
    """The traces in a file or folder, without a log of complaints in it; none if it is something else."""
    files = traces_in(path) if path.is_dir() else [path]
    own = log.resolve() if log is not None else None
    return [file for file in files if file.resolve() != own and (kind := kind_of(file)) and kind.name in _TRACE_KINDS]


def _read_traces(
    path: Path, traces: Sequence[Path], rows: Mapping[Path, Sequence[tuple[str, FeedbackRow]]], reading: Reading
) -> Chats:
    conversations: list[Conversation] = []
    complaints: dict[str, list[Objection]] = {}

    def damaged(trace: Path, problem: str) -> None:
        reading.left_out(trace_name(trace, path), f"damaged traces ({problem})")

    histories = [*histories_in(traces, path, reading, damaged)]
    for history in histories:
        reading.left_out(history.name, "calls of the system itself, such as extraction", history.aside)
        spoken = [chat for chat in history.chats if any(True for _ in chat.conversation.turns())]
        reading.left_out(history.name, "dialogues of traces without a message", len(history.chats) - len(spoken))
        conversations += [chat.conversation for chat in spoken]
    chats = [chat for history in histories for chat in history.chats]
    for trace, trace_rows in rows.items():
        answers = [answer for history in histories for answer in history.answers.get(trace, ())]
        for where, row in trace_rows:
            home, complaint = _complaint(chats, answers, row)
            if complaint is None:
                reading.problem(f"{where}: {home}")
            elif all(conversation.id != home for conversation in conversations):
                reading.left_out(home, "complaints about dialogues without a message")
            else:
                complaints.setdefault(home, []).append(complaint)
    if not conversations:
        raise DataError(f"{path}: no trace in it has a message; record with `memtune.trace()` (docs/tracing.md)")
    return Chats(conversations, complaints)


def _complaint(
    chats: Sequence[TracedChat], answers: Sequence[RecordedAnswer], row: FeedbackRow
) -> tuple[str, Objection | None]:
    """The conversation that a complaint about one of the answers is about, with it; or what is wrong with the row."""
    answer = matching_answer(row.question, row.reply, answers)
    if isinstance(answer, str):
        return answer, None
    chat = next(chat for chat in chats if any(own is answer for own in chat.answers))
    asking = tuple(sorted(chat.question_turns.get(answer.id, ())))
    after = chat.asked_after.get(answer.id)
    return chat.conversation.id, Objection(answer.question, answer.reply, asking, row.answers, after)
