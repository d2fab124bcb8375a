"""LongMemEval (Wu et al. 2025, arXiv:2410.10813) as conversations: each question has a history of chats of its own.

Decisions: a session that a history has twice gets its place in its id; turns marked `has_answer` are the
evidence; the question says the day it is asked, since many depend on it; questions whose id ends with `_abs` ask what
was never said, and accept the usual ways to say so beside the reply in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field

from experiments.data.dataset_reader import FileReader, Reading, build_conversation
from experiments.data.json_rows import FileLayout, rows_by_id
from experiments.data.published.locomo import NOT_TOLD
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn

LONGMEMEVAL = "longmemeval"
ABSTENTION = "abstention"

_EXPECTED = "the layout of LongMemEval is expected, see docs/data-format.md"
_UPDATES = "knowledge-update"


class _Turn(FileLayout):
    role: str
    content: str
    has_answer: bool | None = None


class _Instance(FileLayout):
    question_id: str
    question_type: str
    question: str
    answer: str | int | float
    question_date: str = ""
    haystack_session_ids: tuple[str, ...] = Field(min_length=1)
    haystack_dates: tuple[str, ...]
    haystack_sessions: tuple[tuple[_Turn, ...], ...]


def read_longmemeval(path: Path, reading: Reading) -> Iterator[Conversation | None]:
    """The conversations of a LongMemEval file (`_s`, `_m` or oracle), one a question, as they are read."""
    rows = rows_by_id(path, _Instance, reading, _EXPECTED, kind="question", key="question_id", noun="question")
    for where, row in rows:
        lengths = {len(row.haystack_session_ids), len(row.haystack_dates), len(row.haystack_sessions)}
        if len(lengths) > 1:
            reading.problem(
                f"{where}.haystack_sessions: {len(row.haystack_sessions)} sessions, {len(row.haystack_session_ids)} "
                f"ids and {len(row.haystack_dates)} dates; {_EXPECTED}"
            )
        else:
            yield _conversation(where, row, reading)


READER = FileReader(LONGMEMEVAL, read_longmemeval)


def _conversation(where: str, row: _Instance, reading: Reading) -> Conversation | None:
    sessions: list[DialogueSession] = []
    evidence: list[str] = []
    session_keys: set[str] = set()
    for place, (name, date, messages) in enumerate(
        zip(row.haystack_session_ids, row.haystack_dates, row.haystack_sessions, strict=True)
    ):
        key = name if name not in session_keys else f"{name}#{place}"
        session_keys.add(key)
        if not messages:
            continue
        turns = tuple(
            Turn(id=f"{key}:{number}", speaker=message.role, text=message.content)
            for number, message in enumerate(messages, start=1)
        )
        evidence += [turn.id for turn, message in zip(turns, messages, strict=True) if message.has_answer]
        sessions.append(DialogueSession(id=key, time=date, turns=turns))
    unanswerable = row.question_id.endswith("_abs")
    if not evidence and not unanswerable:
        reading.left_out(row.question_id, "evidence that is known by its session only")
    answer = str(row.answer).strip()
    if not answer:
        reading.problem(f"{where}.answer: is empty; {_EXPECTED}")
        return None
    today = f"Today is {row.question_date}. " if row.question_date else ""
    question = Question(
        id=row.question_id,
        question=f"{today}{row.question}",
        answers=(answer, *NOT_TOLD) if unanswerable else (answer,),
        kind=ABSTENTION if unanswerable else row.question_type,
        supersedes=row.question_type == _UPDATES and not unanswerable,
        unanswerable=unanswerable,
        evidence=tuple(evidence),
    )
    return build_conversation(where, _EXPECTED, reading, row.question_id, sessions, [question])
