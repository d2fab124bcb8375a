"""Users' conversations in memtune's own layout: JSON lines, with their questions in them or in a table beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.data.own.questions import QUESTIONS, Questions
from experiments.data.reading import FileReader, Ids, Reading
from tracing.systems.conversations import Conversation, read_conversations

JSONL = "jsonl"

_REMEDY = "see docs/data-format.md"


def read_lines(path: Path, reading: Reading) -> Iterator[Conversation]:
    """The conversations of a file, or of the `.jsonl` files in a folder, with the questions beside them.

    Raises:
        DataError: there is none, or a row is invalid; the message names file, line, key and remedy.
    """
    files = [path]
    if path.is_dir():
        files = [file for file in sorted(path.glob("*.jsonl")) if file.is_file() and file.stem != QUESTIONS]
    if not files:
        reading.problem(f"{path}: holds no .jsonl file; one conversation a line is expected, {_REMEDY}")
    questions = Questions.beside(path, reading)
    ids = Ids(reading)
    for file in files:
        for conversation in read_conversations(file, reading.problem):
            if ids.new("conversation", conversation.id, "id", str(file), str(file)):
                yield _with(questions, conversation, str(file), reading)
    questions.unclaimed()


READER = FileReader(JSONL, read_lines)


def _with(questions: Questions, conversation: Conversation, where: str, reading: Reading) -> Conversation:
    turns = frozenset(turn.id for turn in conversation.turns())
    separate_questions = questions.of(conversation.id, turns, frozenset(fact.id for fact in conversation.facts))
    own_ids = {question.id for question in conversation.questions}
    for question in separate_questions:
        if question.id in own_ids:
            reading.problem(
                f"{where}: questions: {question.id!r} is in {QUESTIONS} beside it too; give each its own id"
            )
    new = tuple(question for question in separate_questions if question.id not in own_ids)
    return conversation.model_copy(update={"questions": (*conversation.questions, *new)}) if new else conversation
