"""What is measured of generated questions: how many, how many of those written they are, and what a reader says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from experiments.data.generating.generating import Generated
from tracing.errors import DataError
from tracing.systems.conversations import Conversation, first_problem

Part = Literal["development", "held-out"]

_LOOKED_AT = ("conv-", "train-", "val-", "test-1", "test-2", "test-30", "test-31")
"""What ids of the conversations begin with whose drafts were read while prompts and tests were made."""


class ReadRow(BaseModel):
    """A generated question as somebody reads it: with what the conversation says, and three yes-or-no verdicts.

    Attributes:
        right: the answer is what the conversation says.
        answerable: the cited turns tell it.
        unambiguous: nobody who knows the conversation would answer something else.
    """

    id: str
    kind: str
    question: str
    answers: tuple[str, ...]
    turns: tuple[str, ...]
    right: bool | None = None
    answerable: bool | None = None
    unambiguous: bool | None = None


def part_of(conversations: Sequence[Conversation], part: Part) -> list[Conversation]:
    """The conversations that were looked at, or those that were not."""
    looked_at = part == "development"
    return [conversation for conversation in conversations if conversation.id.startswith(_LOOKED_AT) == looked_at]


def bare(conversation: Conversation) -> Conversation:
    """A conversation as if nobody had written a question about it."""
    return conversation.model_copy(update={"questions": (), "facts": ()})


def figures_of(generated: Generated) -> dict[str, Any]:
    """Counts and shares of a pass."""
    return {
        "conversations": len(generated.conversations),
        "sessions": generated.sessions,
        "drafts": dict(generated.drafts),
        "kept": dict(generated.kept),
        "rows_a_session": generated.kept.total() / max(1, generated.sessions),
        "share_kept": generated.share_kept,
        "dropped": dict(generated.dropped.most_common()),
        "stopped": generated.stopped,
    }


def rows_to_read(generated: Generated) -> list[ReadRow]:
    """The questions with the turns that they cite, or that say what was never said of the other."""
    rows: list[ReadRow] = []
    for conversation in generated.conversations:
        turns = {turn.id: turn for turn in conversation.turns()}
        times = {turn.id: session.time for session in conversation.sessions for turn in session.turns}
        for question in conversation.questions:
            near = [question.near_miss.turn] if question.near_miss is not None else []
            shown = dict.fromkeys((*question.evidence, *near))
            spoken = tuple(f"{turn} ({times[turn]}) {turns[turn].spoken}" for turn in shown)
            rows.append(
                ReadRow(
                    id=question.id,
                    kind=question.kind,
                    question=question.question,
                    answers=question.answers,
                    turns=spoken,
                )
            )
    return rows


def write_rows(path: Path, rows: Sequence[ReadRow]) -> None:
    """Write rows to be read; a reader puts true or false in place of each null."""
    path.write_text("".join(json.dumps(row.model_dump(), ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def reading_figures(path: Path) -> dict[str, Any]:
    """What the reader of a file of rows says.

    Raises:
        DataError: the file cannot be read, or no row in it was read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [ReadRow.model_validate_json(line) for line in lines if line.strip()]
    except (OSError, ValidationError) as error:
        reason = first_problem(error) if isinstance(error, ValidationError) else error.strerror
        raise DataError(f"{path}: cannot be read ({reason}); give a file that --rows wrote") from None
    read = [row for row in rows if None not in (row.right, row.answerable, row.unambiguous)]
    if not read:
        raise DataError(f"{path}: no row has all three verdicts; put true or false in place of null")
    sound = [row for row in read if row.right and row.answerable and row.unambiguous]
    kinds = Counter(row.kind for row in read)
    return {
        "read": len(read),
        **{name: sum(bool(getattr(row, name)) for row in read) for name in ("right", "answerable", "unambiguous")},
        "sound": len(sound),
        "share_sound": len(sound) / len(read),
        "by_kind": {kind: [sum(row.kind == kind for row in sound), count] for kind, count in kinds.items()},
    }
