"""Which data set a file or folder is of, by its names and first keys."""

from __future__ import annotations

from pathlib import Path

from experiments.data.cards import CARDS
from experiments.data.own.feedback import has_feedback
from experiments.data.own.question_table import QUESTIONS
from tracing.errors import DataError
from tracing.files.file_kinds import JSONL, SMARTCOMMENT, kind_of, likeness
from tracing.suggestions import did_you_mean

_FILES = ("longmemeval", "locomo", "openai-chats", "realmem", "agent-traces", JSONL, "sharegpt")
_FOLDERS = ("realmem", "openai-chats", "sharegpt", "memeval", JSONL)
"""Data sets whose file or folder is recognised by the layout of a file."""


def recognised(path: Path) -> str:
    """The name of the data set that a file or folder is of.

    Raises:
        DataError: it does not exist, or is not recognised.
    """
    if not path.exists():
        files = (str(file) for file in path.parent.glob("*")) if path.parent.is_dir() else ()
        near = did_you_mean(str(path), [*CARDS, *files])
        raise DataError(
            f"{path}: no such file or folder, and no data set of this name{near}; `memtune data list` lists them"
        )
    name = _folder(path) if path.is_dir() else _file(path)
    if name is not None:
        return name
    looks = likeness(path, "folder", "json")
    if not looks:
        looks = "say what it is with --dataset NAME, `memtune data list` lists them"
    raise DataError(f"{path}: is not recognised; {looks}")


def _folder(path: Path) -> str | None:
    if has_feedback(path):
        return "traces"
    if any((path / f"turns.{ending}").is_file() for ending in ("csv", "jsonl")):
        return "csv"
    if next(path.rglob("probing_questions.json"), None):
        return "beam"
    files = (file for file in sorted(path.rglob("*.json*")) if file.is_file() and file.stem != QUESTIONS)
    first = next(files, None)
    name = _file(first) if first is not None else None
    return name if name in _FOLDERS else None


def _file(path: Path) -> str | None:
    kind = kind_of(path)
    if kind is not None and kind.name == SMARTCOMMENT:
        return "memeval"
    if kind is not None and kind.name in _FILES:
        return kind.name
    # Where nothing is known of them, lines of memtune's own layout can say best what is wrong with them.
    vague = kind is None or kind.name in ("json", "broken", "empty")
    return JSONL if vague and path.suffix == ".jsonl" else None
