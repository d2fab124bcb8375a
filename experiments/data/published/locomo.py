"""LoCoMo (Maharana et al. 2024, arXiv:2402.17753) as conversations.

Decisions, so that scores can be compared: turns keep their `dia_id`; the caption of a shared image follows the turn's
text in brackets, since questions ask about images; category 5 has no gold answer in the file and gets ways to say "not
mentioned", unless the file gives one, and its misleading answer (`adversarial_answer`) is the near miss. Evidence ids
with other separators (`D8:6; D9:17`, `D:11:26`) are corrected, ids of turns that do not exist are ignored and counted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field, TypeAdapter, ValidationError

from experiments.data.dataset_reader import FileReader, Reading, build_conversation
from experiments.data.json_rows import FileLayout, rows_by_id
from tracing.systems.conversations import Conversation, DialogueSession, NearMiss, Question, Turn

CATEGORIES: Mapping[int, str] = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = 5
NOT_TOLD = ("not mentioned", "unknown", "no information", "not specified", "not stated")
"""Accepted answers of an adversarial question."""


class _Turn(FileLayout):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class _Question(FileLayout):
    question: str
    category: int = Field(ge=1, le=5)
    answer: str | int | float | None = None
    adversarial_answer: str | int | float | None = None
    evidence: tuple[str, ...] = ()


class _Sample(FileLayout):
    sample_id: str
    conversation: Mapping[str, Any]
    qa: tuple[_Question, ...]


LOCOMO = "locomo"
USUAL = (1, 2, 3, 4)
"""Categories asked unless others are listed."""

_EXPECTED = "the layout of LoCoMo is expected, see docs/data-format.md"
_TURNS = TypeAdapter(tuple[_Turn, ...])
_SESSION = re.compile(r"session_(\d{1,9})")
_TURN_ID = re.compile(r"D:?(\d+):(\d+)")


def read_locomo(path: Path, reading: Reading, categories: Collection[int] = USUAL) -> Iterator[Conversation | None]:
    """The conversations of a LoCoMo file with the questions of `categories`."""
    rows = rows_by_id(path, _Sample, reading, _EXPECTED, kind="conversation", key="sample_id", noun="conversation")
    for where, sample in rows:
        yield _conversation(where, sample, categories, reading)


def reader_of(categories: Collection[int]) -> FileReader:
    """LoCoMo with the questions of these categories."""
    return FileReader(LOCOMO, partial(read_locomo, categories=categories))


READER = reader_of(USUAL)


def _conversation(where: str, sample: _Sample, categories: Collection[int], reading: Reading) -> Conversation | None:
    name = sample.sample_id
    sessions = locomo_sessions(where, sample.conversation, reading)
    if sessions is None:
        return None
    turn_ids = {turn.id for session in sessions for turn in session.turns}
    questions: list[Question] = []
    for number, row in enumerate(sample.qa, start=1):
        unanswerable = row.category == ADVERSARIAL and row.answer is None
        answers = NOT_TOLD if unanswerable else _forms(row.answer)
        if row.category not in categories:
            reading.left_out(name, "questions of categories not listed in locomo.categories")
        elif not answers:
            reading.left_out(name, "questions without a gold answer")
        else:
            named = [f"D{session}:{turn}" for session, turn in _TURN_ID.findall(" ".join(row.evidence))]
            evidence = tuple(dict.fromkeys(turn for turn in named if turn in turn_ids))
            reading.left_out(name, "evidence ids that name no turn", len(set(named)) - len(evidence))
            misleading = _forms(row.adversarial_answer) if unanswerable and evidence else ()
            questions.append(
                Question(
                    id=f"{name}-q{number:03}",
                    question=row.question,
                    answers=answers,
                    kind=CATEGORIES[row.category],
                    unanswerable=unanswerable,
                    evidence=evidence,
                    near_miss=NearMiss(turn=evidence[0], value=misleading[0]) if misleading else None,
                )
            )
    return build_conversation(f"{where}.conversation", _EXPECTED, reading, name, sessions, questions)


def locomo_sessions(
    where: str, conversation: Mapping[str, Any], reading: Reading
) -> tuple[DialogueSession, ...] | None:
    """The sessions of what a file has under `conversation`; None, with its problems reported, where they are none."""
    numbers = sorted(int(match[1]) for key in conversation if (match := _SESSION.fullmatch(key)))
    sessions: list[DialogueSession] = []
    sound = True
    for number in numbers:
        key = f"session_{number}"
        try:
            turns = _TURNS.validate_python(conversation.get(key, ()))
        except ValidationError as error:
            reading.invalid(f"{where}.conversation.{key}", error, _EXPECTED)
            sound = False
            continue
        if turns:
            time = str(conversation.get(f"{key}_date_time", ""))
            sessions.append(DialogueSession(id=f"D{number}", time=time, turns=tuple(_turn(turn) for turn in turns)))
    if sound and not sessions:
        reading.problem(f"{where}.conversation: has no session_1; {_EXPECTED}")
    return tuple(sessions) if sound and sessions else None


def _turn(row: _Turn) -> Turn:
    caption = f" [shares an image: {row.blip_caption}]" if row.blip_caption else ""
    return Turn(id=row.dia_id, speaker=row.speaker, text=f"{row.text}{caption}".strip())


def _forms(answer: str | int | float | None) -> tuple[str, ...]:
    text = "" if answer is None else str(answer).strip()
    return (text,) if text else ()
