"""Tables of questions that users write beside their conversations: `questions.csv` or `questions.jsonl`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from experiments.data.own.table_rows import TextList, rows_in
from experiments.data.reading import Ids, Reading
from tracing.systems.conversations import Question

QUESTIONS = "questions"


class QuestionRow(BaseModel):
    """One question; `conversation` is the id of the conversation it is about."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    conversation: str
    question: str = Field(min_length=1)
    answers: TextList = Field(min_length=1)
    id: str = ""
    kind: str = "stable"
    evidence: TextList = ()
    supersedes: bool = False
    unanswerable: bool = False
    fact: str = ""

    def to_question(self, number: int) -> Question:
        """The same as a question; the `number` of its row makes an id where it has none."""
        values = self.model_dump(exclude={"conversation", "id", "fact"})
        return Question(id=self.id or f"{self.conversation}-q{number}", fact=self.fact or None, **values)


class Questions:
    """The questions of a folder, by conversation; a row about a conversation that does not exist is reported.

    A folder without such a file has none.

    Args:
        folder: of the table.
        reading: receives the problems of its rows.
        others: whether the table may be about other conversations too; then such rows are counted, not reported.
    """

    def __init__(self, folder: Path, reading: Reading, *, others: bool = False) -> None:
        self._reading, self._others = reading, others
        self._of: dict[str, list[tuple[str, Question]]] = defaultdict(list)
        ids = Ids(reading)
        for where, at, row in rows_in(folder, QUESTIONS, QuestionRow, reading):
            question = row.to_question(len(self._of[row.conversation]) + 1)
            if ids.new("question", question.id, "id", at, where):
                self._of[row.conversation].append((where, question))

    @classmethod
    def beside(cls, path: Path, reading: Reading) -> Self:
        """The questions in a folder, or those beside a file, which may also be about other files.

        A table beside a file that has not a single row in this layout is somebody else's: it is left out and counted.
        """
        if path.is_dir():
            return cls(path, reading)
        problems: list[str] = []
        beside = cls(path.parent, Reading(problems=problems), others=True)
        beside._reading = reading
        if problems and not beside._of:
            reading.left_out(path.name, f"tables of questions beside it in another layout ({problems[0]})")
        else:
            for problem in problems:
                reading.problem(problem)
        return beside

    def of(self, conversation: str, turns: frozenset[str], facts: frozenset[str] = frozenset()) -> tuple[Question, ...]:
        """Those about a conversation; a row that names a turn or fact it does not have is reported, and left out."""
        return tuple(
            question for where, question in self._of.pop(conversation, ()) if self._fits(where, question, turns, facts)
        )

    def unclaimed(self) -> None:
        """Report the rows whose conversation nobody asked for."""
        for conversation, rows in self._of.items():
            if self._others:
                self._reading.left_out(conversation, "questions about other conversations", len(rows))
                continue
            for where, _ in rows:
                self._reading.problem(
                    f"{where}: conversation: {conversation!r} is not the id of a conversation; correct it, "
                    "`memtune data show` lists the ids"
                )

    def _fits(self, where: str, question: Question, turns: frozenset[str], facts: frozenset[str]) -> bool:
        unknown = [turn_id for turn_id in question.evidence if turn_id not in turns]
        for turn_id in unknown:
            self._reading.problem(
                f"{where}: evidence: {turn_id!r} is not the id of a turn of the conversation; correct it"
            )
        wrong_fact = question.fact is not None and question.fact not in facts
        if wrong_fact:
            self._reading.problem(f"{where}: fact: {question.fact!r} is not the id of a fact; correct it")
        return not unknown and not wrong_fact
