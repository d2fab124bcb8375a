"""LoCoMo (Maharana et al. 2024, arXiv:2402.17753) as conversations.

Decisions, so that scores can be compared: turns keep their `dia_id`; the caption of a shared image follows the turn's
text in brackets, since questions ask about images; category 5 has no gold answer in the file and gets ways to say "not
mentioned", unless the file gives one. Evidence ids with other separators (`D8:6; D9:17`, `D:11:26`) are corrected, ids
of turns that do not exist are ignored and counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tracing.errors import DataError
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn, first_problem

CATEGORIES: Mapping[int, str] = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = 5
NOT_TOLD = ("not mentioned", "unknown", "no information", "not specified", "not stated")
"""Accepted answers of an adversarial question."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Turn(_Row):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class _Question(_Row):
    question: str
    category: int = Field(ge=1, le=5)
    answer: str | int | float | None = None
    evidence: tuple[str, ...] = ()


class _Sample(_Row):
    sample_id: str
    conversation: Mapping[str, Any]
    qa: tuple[_Question, ...]


@dataclass(frozen=True, slots=True)
class LocomoNotes:
    """What was left out: questions of other categories or without a gold answer, and evidence ids of no turn."""

    other_categories: int
    without_answer: int
    unknown_evidence: int


_SAMPLES = TypeAdapter(list[_Sample])
_TURNS = TypeAdapter(tuple[_Turn, ...])
_SESSION = re.compile(r"session_(\d+)")
_TURN_ID = re.compile(r"D:?(\d+):(\d+)")


def read_locomo(path: Path, categories: Collection[int]) -> tuple[list[Conversation], dict[str, LocomoNotes]]:
    """All conversations of a LoCoMo file with the questions of `categories`, and by conversation what was left out.

    Raises:
        DataError: the file is missing, is not JSON, or does not have LoCoMo's layout; names file, key and remedy.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); give --data a LoCoMo file") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error}); give --data a LoCoMo file") from None
    try:
        samples = _SAMPLES.validate_python(rows)
        if not samples:
            raise DataError(f"{path}: holds no conversation; give --data a LoCoMo file")
        place_of: dict[str, int] = {}
        for place, sample in enumerate(samples):
            if place_of.setdefault(sample.sample_id, place) != place:
                first = place_of[sample.sample_id]
                raise _LayoutError(f"{place}.sample_id: {sample.sample_id!r} is that of {first} too")
        read = [_conversation(sample, categories) for sample in samples]
    except ValidationError as error:
        raise DataError(
            f"{path}: {first_problem(error)}; the layout of LoCoMo is expected, see docs/data-format.md"
        ) from None
    except _LayoutError as error:
        raise DataError(f"{path}: {error}; the layout of LoCoMo is expected, see docs/data-format.md") from None
    return [conversation for conversation, _ in read], {conversation.id: notes for conversation, notes in read}


class _LayoutError(ValueError):
    pass


def _conversation(sample: _Sample, categories: Collection[int]) -> tuple[Conversation, LocomoNotes]:
    sessions = _sessions(sample)
    known = {turn.id for session in sessions for turn in session.turns}
    questions: list[Question] = []
    other = without = unknown = 0
    for number, row in enumerate(sample.qa, start=1):
        unanswerable = row.category == ADVERSARIAL and row.answer is None
        answers = NOT_TOLD if unanswerable else _forms(row.answer)
        if row.category not in categories:
            other += 1
        elif not answers:
            without += 1
        else:
            named = [f"D{session}:{turn}" for session, turn in _TURN_ID.findall(" ".join(row.evidence))]
            evidence = tuple(dict.fromkeys(turn for turn in named if turn in known))
            unknown += len(set(named)) - len(evidence)
            questions.append(
                Question(
                    id=f"{sample.sample_id}-q{number:03}",
                    question=row.question,
                    answers=answers,
                    kind=CATEGORIES[row.category],
                    unanswerable=unanswerable,
                    evidence=evidence,
                )
            )
    speakers = tuple(dict.fromkeys(turn.speaker for session in sessions for turn in session.turns))
    try:
        conversation = Conversation(
            id=sample.sample_id, speakers=speakers, sessions=sessions, questions=tuple(questions)
        )
    except ValidationError as error:
        raise _LayoutError(f"{sample.sample_id}.conversation: {first_problem(error)}") from None
    return conversation, LocomoNotes(other, without, unknown)


def _sessions(sample: _Sample) -> tuple[DialogueSession, ...]:
    numbers = sorted(int(match[1]) for key in sample.conversation if (match := _SESSION.fullmatch(key)))
    sessions = []
    for number in numbers:
        key = f"session_{number}"
        try:
            turns = _TURNS.validate_python(sample.conversation[key])
        except ValidationError as error:
            raise _LayoutError(f"{sample.sample_id}.conversation.{key}.{first_problem(error)}") from None
        if turns:
            time = str(sample.conversation.get(f"{key}_date_time", ""))
            sessions.append(DialogueSession(id=f"D{number}", time=time, turns=tuple(_turn(turn) for turn in turns)))
    if not sessions:
        raise _LayoutError(f"{sample.sample_id}.conversation: has no session_1")
    return tuple(sessions)


def _turn(row: _Turn) -> Turn:
    caption = f" [shares an image: {row.blip_caption}]" if row.blip_caption else ""
    return Turn(id=row.dia_id, speaker=row.speaker, text=f"{row.text}{caption}".strip())


def _forms(answer: str | int | float | None) -> tuple[str, ...]:
    text = "" if answer is None else str(answer).strip()
    return (text,) if text else ()
