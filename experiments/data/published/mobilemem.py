"""MobileMem (Zhejiang University) in the layout of LoCoMo to which its own scripts convert it: a user and an assistant.

Decisions: the categories are MobileMem's, not LoCoMo's; of a question without an answer the ways to say so are accepted
too; questions on images are left out, unless the turns have captions; evidence is told in words and names no turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.data.dataset_reader import FileReader, Ids, Reading, build_conversation
from experiments.data.json_rows import FileLayout, json_rows
from experiments.data.published.locomo import locomo_sessions
from tracing.systems.conversations import Conversation, Question

MOBILEMEM = "mobilemem"

_EXPECTED = "the layout of MobileMem after its Jsonl2Locomo.py is expected, see docs/data-format.md"
_KINDS = {
    0: "other",
    1: "multi-hop",
    2: "temporal",
    3: "abstention",
    4: "single-hop",
    5: "preference",
    6: "visual",
    7: "knowledge-update",
}
_ABSTENTION, _VISUAL, _UPDATE = 3, 6, 7
_CAPTION = "Image Caption:"
_NOT_TOLD = ("没有提到", "未提及", "不知道", "无法确定", "not mentioned", "unknown")


class _Question(FileLayout):
    question: str
    category: int
    answer: str | int | float | None = None
    evidence: tuple[Any, ...] = ()


class _User(FileLayout):
    sample_id: str
    conversation: Mapping[str, Any]
    qa: tuple[_Question, ...]


def read_mobilemem(path: Path, reading: Reading) -> Iterator[Conversation | None]:
    """The users of a converted file, or of all files `locomo_u*.json` in a folder."""
    files = sorted(path.glob("locomo_u*.json")) if path.is_dir() else [path]
    if not files:
        reading.problem(f"{path}: holds no file locomo_u*.json; {_EXPECTED}")
    ids = Ids(reading)
    for place, file in enumerate(files):
        reading.advanced(place, len(files))
        for where, row in json_rows(file, _User, reading, _EXPECTED):
            if ids.new("conversation", row.sample_id, "sample_id", where, where):
                yield _conversation(where, row, reading)


READER = FileReader(MOBILEMEM, read_mobilemem)


def _conversation(where: str, row: _User, reading: Reading) -> Conversation | None:
    sessions = locomo_sessions(where, row.conversation, reading)
    if sessions is None:
        return None
    has_captions = any(_CAPTION in turn.text for session in sessions for turn in session.turns)
    questions = []
    for number, question in enumerate(row.qa, start=1):
        answer = "" if question.answer is None else str(question.answer).strip()
        if not answer:
            reading.left_out(row.sample_id, "questions without a gold answer")
            continue
        if question.category == _VISUAL and not has_captions:
            reading.left_out(row.sample_id, "questions on images, of which the file has no captions")
            continue
        if question.evidence:
            reading.left_out(row.sample_id, "evidence that is told in words and names no turn")
        unanswerable = question.category == _ABSTENTION
        questions.append(
            Question(
                id=f"{row.sample_id}-q{number:03}",
                question=question.question,
                answers=(answer, *_NOT_TOLD) if unanswerable else (answer,),
                kind=_KINDS.get(question.category, _KINDS[0]),
                supersedes=question.category == _UPDATE,
                unanswerable=unanswerable,
            )
        )
    return build_conversation(f"{where}.conversation", _EXPECTED, reading, row.sample_id, sessions, questions)
