"""BEAM (Tavakoli et al. 2025, arXiv:2510.27246) as conversations: long chats with an assistant, and probing questions.

A chat is a folder of the repository with `chat.json` (or `chat_trunecated.json`, which its authors prefer where it
exists) and `probing_questions/probing_questions.json`. Decisions: a batch is a session; messages keep their number.
What tests an instruction or a preference has a rubric but no answer, and is left out. The chats of ten million tokens
have another layout, which is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from experiments.data.dataset_reader import FileReader, Reading, build_conversation
from experiments.data.json_rows import FileLayout, read_document
from experiments.data.published.locomo import NOT_TOLD
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn

BEAM = "beam"

_CHATS = ("chat_trunecated.json", "chat.json")
_QUESTIONS = Path("probing_questions", "probing_questions.json")
_ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary")
_EXPECTED = "the layout of BEAM is expected, see docs/data-format.md"
_ABSTENTION, _UPDATE, _UPDATED = "abstention", "knowledge_update", "updated_info"
_MARK = "->->"
"""Ends a user's message with its place in the plan, which nobody said."""


class _Message(FileLayout):
    role: str
    id: int
    content: str
    time_anchor: str | None = None


class _Batch(FileLayout):
    batch_number: int
    turns: tuple[tuple[_Message, ...], ...]


class _Probe(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    question: str
    source_chat_ids: Any = None


_BATCHES = TypeAdapter(tuple[_Batch, ...])
_PROBES = TypeAdapter(dict[str, tuple[_Probe, ...]])


def read_beam(path: Path, reading: Reading) -> Iterator[Conversation | None]:
    """The chats in a folder of BEAM: a chat's own folder, or one that holds several."""
    folders = sorted({file.parent.parent for file in path.rglob(str(_QUESTIONS))}, key=_by_number)
    if not folders:
        reading.problem(f"{path}: holds no chat with {_QUESTIONS}; {_EXPECTED}")
    for place, folder in enumerate(folders):
        reading.advanced(place, len(folders))
        file = next((folder / name for name in _CHATS if (folder / name).is_file()), folder / _CHATS[-1])
        yield _conversation(path, folder, file, reading)


READER = FileReader(BEAM, read_beam)


def _by_number(folder: Path) -> tuple[str, int, str]:
    return str(folder.parent), int(folder.name) if folder.name.isdigit() else 0, folder.name


def _conversation(root: Path, folder: Path, file: Path, reading: Reading) -> Conversation | None:
    questions_file = folder / _QUESTIONS
    batches = read_document(file, _BATCHES, reading, _EXPECTED)
    probes = read_document(questions_file, _PROBES, reading, _EXPECTED)
    if batches is None or probes is None:
        return None
    name = "-".join(folder.relative_to(root).parts) or folder.name
    sessions = tuple(_session(batch) for batch in batches if any(batch.turns))
    turn_ids = {turn.id for session in sessions for turn in session.turns}
    questions = [
        question
        for kind, group in probes.items()
        for number, probe in enumerate(group)
        if (
            question := _question(
                f"{questions_file}: {kind}.{number}",
                f"{name}-{kind}-{number + 1}",
                kind,
                probe,
                turn_ids,
                name,
                reading,
            )
        )
    ]
    return build_conversation(str(file), _EXPECTED, reading, name, sessions, questions)


def _session(batch: _Batch) -> DialogueSession:
    messages = [message for turn in batch.turns for message in turn]
    time = next((message.time_anchor for message in messages if message.time_anchor), "")
    turns = tuple(
        Turn(
            id=str(message.id),
            speaker=message.role,
            text=message.content.rpartition(_MARK)[0].strip() or message.content,
        )
        for message in messages
    )
    return DialogueSession(id=f"batch-{batch.batch_number}", time=time, turns=turns)


def _question(
    where: str, name: str, kind: str, probe: _Probe, turn_ids: set[str], conversation: str, reading: Reading
) -> Question | None:
    extra: Mapping[str, Any] = probe.model_extra or {}
    answer = next((text for key in _ANSWERS if (text := str(extra.get(key) or "").strip())), "")
    if not answer:
        reading.left_out(conversation, "questions that have a rubric but no answer")
        return None
    unanswerable = kind == _ABSTENTION
    named = probe.source_chat_ids
    if kind == _UPDATE and isinstance(named, dict) and named.get(_UPDATED):
        named = named[_UPDATED]
    listed = list(dict.fromkeys(str(number) for number in _numbers(named)))
    evidence = tuple(turn_id for turn_id in listed if turn_id in turn_ids)
    reading.left_out(conversation, "evidence ids that name no turn", len(listed) - len(evidence))
    try:
        return Question(
            id=name,
            question=probe.question,
            answers=(answer, *NOT_TOLD) if unanswerable else (answer,),
            kind=kind,
            supersedes=kind == _UPDATE,
            unanswerable=unanswerable,
            evidence=evidence,
        )
    except ValidationError as error:
        reading.invalid(where, error, _EXPECTED)
        return None


def _numbers(named: Any) -> Iterator[int]:
    if isinstance(named, dict):
        named = list(named.values())
    for element in named if isinstance(named, list) else [named]:
        if isinstance(element, list | dict):
            yield from _numbers(element)
        elif isinstance(element, int) and not isinstance(element, bool):
            yield element
