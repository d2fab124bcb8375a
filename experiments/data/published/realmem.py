"""RealMem (Bian et al. 2026, arXiv:2601.06966) as conversations: a persona's projects with an assistant over months.

A file is one persona. Decisions: each project is a conversation, which holds its own sessions; chats outside the
projects, which only make the history longer, are left out. The gold memories are the facts of the turn they were taken
from, so they score extraction. A memory that was merged from several turns names no turn of its own and is no fact; a
question that used it has the turn of the memory it was merged into as evidence. A query is asked with the reply that
follows as its answer, where all memories that the reply used are of the same project. Such replies are long: judge
with a model (`metric: llm_judge`).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from experiments.data.dataset_reader import FileReader, Ids, Reading, build_conversation
from experiments.data.json_rows import FileLayout, read_document
from tracing.systems.conversations import Conversation, DialogueSession, Fact, Question, Turn

REALMEM = "realmem"

_EXPECTED = "the layout of RealMem is expected, see docs/data-format.md"
_SUFFIX = re.compile(r"_dialogues(_\w+)?$")
_LABEL = re.compile(r"^【[^】]*】\s*")
_OUTSIDE = "Enhanced"
"""The project of chats that only make the history longer."""


class _UsedMemory(FileLayout):
    session_uuid: str
    content: Any


class _Turn(FileLayout):
    speaker: str
    content: str
    is_query: bool = False
    query_id: str | None = None
    category_name: str | None = None
    memory_used: tuple[_UsedMemory, ...] = ()


class _Memory(FileLayout):
    index: str
    content: Any
    source_turn: int
    source_content_snapshot: str = ""
    source_role_snapshot: str = ""


class _Session(FileLayout):
    session_identifier: str
    session_uuid: str
    current_time: str = ""
    dialogue_turns: tuple[_Turn, ...]
    extracted_memory: tuple[_Memory, ...] = ()


class _Persona(FileLayout):
    dialogues: tuple[_Session, ...]


_PERSONA = TypeAdapter(_Persona)


def read_realmem(path: Path, reading: Reading) -> Iterator[Conversation | None]:
    """The projects of a RealMem file, or of all such files in a folder."""
    files = sorted(path.glob("*_dialogues*.json")) if path.is_dir() else [path]
    if not files:
        reading.problem(f"{path}: holds no file *_dialogues_*.json; {_EXPECTED}")
    ids = Ids(reading)
    for place, file in enumerate(files):
        reading.advanced(place, len(files))
        persona = read_document(file, _PERSONA, reading, _EXPECTED)
        if persona is None:
            continue
        name = _SUFFIX.sub("", file.stem)
        projects = _projects(persona.dialogues)
        if not projects:
            reading.problem(f"{file}: dialogues: holds no session of a project; {_EXPECTED}")
        for project, sessions in projects.items():
            yield _Project(f"{name}/{project}", str(file), reading, ids).conversation(sessions)


READER = FileReader(REALMEM, read_realmem)


def _projects(sessions: Sequence[_Session]) -> Mapping[str, Sequence[_Session]]:
    projects: dict[str, list[_Session]] = defaultdict(list)
    for session in sessions:
        project = session.session_identifier.partition(":")[0]
        if project != _OUTSIDE and session.dialogue_turns:
            projects[project].append(session)
    return projects


def _text(content: Any) -> str:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return _LABEL.sub("", text).strip()


@dataclass
class _Project:
    """One project on its way to a conversation."""

    name: str
    file: str
    reading: Reading
    ids: Ids
    facts: dict[str, Fact] = field(default_factory=dict)
    fact_of: dict[tuple[str, str], str] = field(default_factory=dict)
    """The fact that a memory is, by the session it is from and its words."""

    def conversation(self, sessions: Sequence[_Session]) -> Conversation | None:
        dialogue_sessions = []
        for session in sessions:
            key = session.session_identifier.partition(":")[2] or session.session_identifier
            turns = tuple(
                Turn(id=f"{key}:{number}", speaker=turn.speaker, text=turn.content)
                for number, turn in enumerate(session.dialogue_turns, start=1)
            )
            dialogue_sessions.append(DialogueSession(id=key, time=session.current_time, turns=turns))
            self._take_facts(session, turns)
        befores = [None, *(dialogue.id for dialogue in dialogue_sessions)]
        questions = tuple(
            question
            for session, before, now in zip(sessions, befores, dialogue_sessions, strict=False)
            for question in self._questions(session, before or now.id, now)
        )
        where, facts = f"{self.file}: {self.name}", tuple(self.facts.values())
        return build_conversation(where, _EXPECTED, self.reading, self.name, dialogue_sessions, questions, facts=facts)

    def _take_facts(self, session: _Session, turns: Sequence[Turn]) -> None:
        for memory in session.extracted_memory:
            words = (session.session_uuid, json.dumps(memory.content, sort_keys=True))
            text = _text(memory.content)
            if memory.index in self.facts:
                self.fact_of[words] = memory.index
                self.reading.left_out(self.name, "memories merged from several turns")
                continue
            turn = _source(memory, turns)
            if turn is None or not text:
                self.reading.left_out(self.name, "memories whose turn is not in the dialogue")
                continue
            self.facts[memory.index] = Fact(id=memory.index, turn=turn, text=text)
            self.fact_of[words] = memory.index

    def _questions(self, session: _Session, before: str, now: DialogueSession) -> Iterator[Question]:
        """The queries of a session: asked before it, unless what they need is in it."""
        turns, in_session = session.dialogue_turns, {turn.id for turn in now.turns}
        for number, (query, reply) in enumerate(pairwise(turns), start=1):
            if not query.is_query:
                continue
            used = [
                self.fact_of.get((memory.session_uuid, json.dumps(memory.content, sort_keys=True)))
                for memory in reply.memory_used
            ]
            facts = list(dict.fromkeys(fact for fact in used if fact is not None))
            if not facts or None in used:
                self.reading.left_out(self.name, "queries that use memories of another project, or none")
                continue
            name = f"{self.name}/{query.query_id or f'{session.session_identifier}:{number}'}"
            where = f"{self.file}: {session.session_identifier}.dialogue_turns.{number - 1}"
            if not reply.content.strip() or not self.ids.new("question", name, "query_id", where, where):
                continue
            evidence = tuple(dict.fromkeys(self.facts[fact].turn for fact in facts))
            yield Question(
                id=name,
                question=query.content,
                answers=(reply.content,),
                kind=(query.category_name or "query").lower().replace(" ", "-"),
                evidence=evidence,
                after_session=before if in_session.isdisjoint(evidence) else now.id,
            )


def _source(memory: _Memory, turns: Sequence[Turn]) -> str | None:
    """The turn that a memory was taken from: the one with the words of its snapshot, or else the one it counts to."""
    same = next((turn.id for turn in turns if turn.text == memory.source_content_snapshot), None)
    if same is not None:
        # Turn 0 stands for none: such a memory was merged from several.
        return same if memory.source_turn != 0 else None
    place = memory.source_turn - 1
    if 0 <= place < len(turns) and turns[place].speaker == memory.source_role_snapshot:
        return turns[place].id
    return None
