"""HaluMem (Chen et al. 2025, arXiv:2511.03506) as conversations: one a user, with its questions between the sessions.

Decisions: the user's turns have the name in `persona_info`, since memory points and questions call the user by it. A
memory point is a fact of the turn of its session that has most of its words, since the file names no turn; one of whose
words no turn has half is left out and counted. `interference` points are facts to be ignored. A question is asked after
the session in which the file has it, and its evidence is the turns of the memory points that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from attribution.text.content import Vocabulary
from experiments.data.dataset_reader import FileReader, Reading, build_conversation
from experiments.data.json_rows import FileLayout, rows_by_id
from experiments.data.published.locomo import NOT_TOLD
from tracing.systems.conversations import Conversation, DialogueSession, Fact, Question, Turn

HALUMEM = "halumem"

_EXPECTED = "the layout of HaluMem is expected, see docs/data-format.md"
_BOUNDARY, _UPDATE, _INTERFERENCE = "Memory Boundary", "Dynamic Update", "interference"
_NAME = re.compile(r"\bName:\s*([^;\n]+)")
_LEAST_SAID = 0.5
"""Least share of a memory point's content words, by weight, that its turn has."""


class _Message(FileLayout):
    role: str
    content: str


class _MemoryPoint(FileLayout):
    index: int
    memory_content: str
    memory_source: str = ""
    is_update: Literal["True", "False"] = "False"
    original_memories: tuple[str, ...] = ()


class _Evidence(FileLayout):
    memory_content: str


class _Question(FileLayout):
    question: str
    answer: str
    question_type: str
    evidence: tuple[_Evidence, ...] = ()


class _Session(FileLayout):
    start_time: str = ""
    dialogue: tuple[_Message, ...]
    memory_points: tuple[_MemoryPoint, ...] = ()
    questions: tuple[_Question, ...] | None = None


class _User(FileLayout):
    uuid: str
    persona_info: str = ""
    sessions: tuple[_Session, ...] = Field(min_length=1)


def read_halumem(path: Path, reading: Reading) -> Iterator[Conversation | None]:
    """The users of a HaluMem file (`HaluMem-Medium.jsonl`, `HaluMem-Long.jsonl`), as they are read."""
    for where, row in rows_by_id(path, _User, reading, _EXPECTED, kind="conversation", key="uuid", noun="user"):
        yield _Talk(row, reading).conversation(where)


READER = FileReader(HALUMEM, read_halumem)


class _Talk:
    """One user on the way to a conversation."""

    def __init__(self, row: _User, reading: Reading) -> None:
        self._row, self._reading = row, reading
        name = _NAME.search(row.persona_info)
        self._user = name[1].strip() if name else "user"
        self._vocabulary = Vocabulary(turn.content for session in row.sessions for turn in session.dialogue)
        self._facts: dict[str, Fact] = {}
        """By their words, those of the latest session."""

    def conversation(self, where: str) -> Conversation | None:
        """The whole conversation; None, with its problems reported, where it breaks a rule."""
        sessions: list[DialogueSession] = []
        facts: list[Fact] = []
        questions: list[Question] = []
        for number, session in enumerate(self._row.sessions, start=1):
            key = f"D{number}"
            turns = tuple(
                Turn(
                    id=f"{key}:{place}",
                    speaker=self._user if message.role == "user" else message.role,
                    text=message.content,
                )
                for place, message in enumerate(session.dialogue, start=1)
            )
            sessions.append(DialogueSession(id=key, time=session.start_time, turns=turns))
            said = {turn.id: self._vocabulary.content_of(turn.text) for turn in turns}
            new = [fact for point in session.memory_points if (fact := self._fact(key, point, said)) is not None]
            self._facts |= {fact.text: fact for fact in new}
            facts += new
            questions += self._questions(key, session.questions or ())
        return build_conversation(
            where, _EXPECTED, self._reading, self._row.uuid, sessions, questions, facts=tuple(facts)
        )

    def _fact(self, session: str, point: _MemoryPoint, said: Mapping[str, frozenset[str]]) -> Fact | None:
        """A memory point as a fact of the turn that says most of it; None where none says half."""
        needed = self._vocabulary.content_of(point.memory_content) - self._vocabulary.content_of(self._user)
        shares = {turn: self._vocabulary.coverage(needed, content) for turn, content in said.items()}
        turn = max(shares, key=lambda name: shares[name], default=None)
        if turn is None or shares[turn] < _LEAST_SAID:
            self._reading.left_out(self._row.uuid, "memory points that no turn of their session says")
            return None
        earlier = next((self._facts[text] for text in point.original_memories if text in self._facts), None)
        if point.is_update == "True" and earlier is None:
            self._reading.left_out(self._row.uuid, "links of updates to memories that are no earlier memory point")
        return Fact(
            id=f"{session}:m{point.index}",
            turn=turn,
            text=point.memory_content,
            action="ignore" if point.memory_source == _INTERFERENCE else "update" if earlier is not None else "add",
            of=earlier.id if earlier is not None else None,
        )

    def _questions(self, session: str, rows: Sequence[_Question]) -> Iterator[Question]:
        for number, row in enumerate(rows, start=1):
            if not row.answer.strip():
                self._reading.left_out(self._row.uuid, "questions without an answer")
                continue
            known = [self._facts[part.memory_content] for part in row.evidence if part.memory_content in self._facts]
            if len(known) < len(row.evidence):
                self._reading.left_out(self._row.uuid, "evidence that is no memory point with a turn")
            unanswerable = row.question_type == _BOUNDARY
            yield Question(
                id=f"{self._row.uuid}/{session}-q{number}",
                question=row.question,
                answers=(row.answer, *NOT_TOLD) if unanswerable else (row.answer,),
                kind=row.question_type.lower().replace(" & ", "-").replace(" ", "-"),
                supersedes=row.question_type == _UPDATE,
                unanswerable=unanswerable,
                evidence=tuple(dict.fromkeys(fact.turn for fact in known)),
                after_session=session,
                fact=known[0].id if len(row.evidence) == len(known) == 1 else None,
            )
