"""What a file or folder of data is, by its content, and every problem that it has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import cast

from attribution.constants import LANGUAGE_SAMPLE
from attribution.judging.metrics import LLM_JUDGE
from attribution.judging.words import METRICS
from attribution.text.languages.reading_language import MEASURED, is_read
from experiments.data.dataset_reader import Progress, Reading, Reports
from experiments.data.datasets import CARDS, DATASETS, DatasetLoader, checked
from experiments.data.loaders import no_questions
from experiments.data.own.feedback import has_feedback
from experiments.data.own.tables import QUESTIONS
from experiments.data.splits import assign_splits
from tracing.errors import DataError, MemtuneError, in_one_line
from tracing.files.file_kinds import JSONL, SMARTCOMMENT, kind_of, likeness
from tracing.suggestions import did_you_mean
from tracing.systems.conversations import Conversation, moment_of

_FILES = (
    *("longmemeval", "locomo", "openai-chats", "realmem", "halumem", "mobilemem", "benchd"),
    *(JSONL, "sharegpt"),
)
_FOLDERS = ("realmem", "mobilemem", "openai-chats", "sharegpt", "memeval", JSONL)
"""Data sets whose file or folder is recognised by the layout of a file."""
_MOST_IDS = 3
_MOST_FILES = 100


def dataset_name_of(path: Path) -> str:
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
    # Exports have files about themselves beside the chats.
    return next((name for file in islice(files, _MOST_FILES) if (name := _file(file)) in _FOLDERS), None)


def _file(path: Path) -> str | None:
    kind = kind_of(path)
    if kind is not None and kind.name == SMARTCOMMENT:
        return "memeval"
    if kind is not None and kind.name in _FILES:
        return kind.name
    # Where nothing is known of them, lines of memtune's own layout can say best what is wrong with them.
    vague = kind is None or kind.name in ("json", "broken", "empty")
    return JSONL if vague and path.suffix == ".jsonl" else None


@dataclass(frozen=True, slots=True)
class DataCheck:
    """Problems with file, line or key, and remedy; notes on what is left out or keeps the data from use; and counts."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    conversations: int
    questions: int


def problems_of_dataset(name: str, path: Path, progress: Progress | None = None) -> DataCheck:
    """Read a whole data set and gather its problems.

    A data set of the user's own that does not gather problems gives its first one.

    Raises:
        ConfigError: there is no such data set, or it cannot be imported.
    """
    load = cast("DatasetLoader", DATASETS.open_callable(name, "path"))
    problems: list[str] = []
    reading = Reading(problems=problems, progress=progress)
    conversations: list[Conversation] = []
    try:
        loaded: Iterable[Conversation] = load.read(path, reading) if isinstance(load, Reports) else load(path)
        conversations.extend(loaded)
        if conversations and not problems:
            checked(conversations, str(path))
    except MemtuneError as error:
        problems.append(in_one_line(error))
    except Exception as error:
        problems.append(f"{path}: dataset {name!r} failed: {in_one_line(error)}; correct the data set")
    # `checked` reported the rest.
    conversations = [element for element in conversations if isinstance(element, Conversation)]
    return DataCheck(
        tuple(problems),
        (
            *reading.omitted(),
            *_for_runs(conversations, name, path),
            *_on_times(conversations),
            *_for_the_metric(conversations),
        ),
        len(conversations),
        sum(len(conversation.questions) for conversation in conversations),
    )


def _on_times(conversations: list[Conversation]) -> list[str]:
    """Times of sessions that only people can read, and sessions that are not in the order of their times."""
    sessions = (session for conversation in conversations for session in conversation.sessions)
    told = [session.time for session in sessions if session.time.strip()]
    unread = [time for time in told if moment_of(time) is None]
    notes = []
    if unread:
        notes.append(
            f"{len(unread)} of {len(told)} times of sessions are in a form that is not known, such as {unread[0]!r}: "
            "models are shown them, but systems that reckon with times take them for none; write 2026-03-04 10:00"
        )
    disordered = [conversation.id for conversation in conversations if not _is_in_order(conversation)]
    if disordered:
        notes.append(
            f"{len(disordered)} of {len(conversations)} conversations ({_some(disordered)}) have a session before one "
            "of an earlier time; sessions are read as they stand: put them in the order in which they took place"
        )
    return notes


def _is_in_order(conversation: Conversation) -> bool:
    moments = filter(None, (moment_of(session.time) for session in conversation.sessions))
    return all(first <= then for first, then in pairwise(moment.replace(tzinfo=None) for moment in moments))


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:_MOST_IDS]) + ", …" * (len(ids) > _MOST_IDS)


def _for_the_metric(conversations: list[Conversation]) -> list[str]:
    """In which languages the default metric may call right replies wrong."""
    unread = [conversation.id for conversation in conversations if not is_read(_texts(conversation))]
    if not unread:
        return []
    return [
        f"{len(unread)} of {len(conversations)} conversations ({_some(unread)}) are in no language that the default "
        f"metric {METRICS[0]} was measured on: it compares words, knows {MEASURED}, and may call a right "
        f"reply in another form wrong. Let a model judge: `metric: {LLM_JUDGE}` in the configuration, "
        "with `models.judge.model` for another model than the task's (docs/guide.md)"
    ]


def _texts(conversation: Conversation) -> tuple[str, ...]:
    """Those of its questions and first turns; none without questions."""
    texts = [text for question in conversation.questions for text in (question.question, *question.answers)]
    return (*texts, *(turn.text for turn in islice(conversation.turns(), LANGUAGE_SAMPLE))) if texts else ()


def _for_runs(conversations: list[Conversation], name: str, path: Path) -> list[str]:
    """What keeps sound data from being used in a run."""
    if not conversations:
        return []
    if not any(conversation.questions for conversation in conversations):
        return [f"it {no_questions(name, path)}"]
    try:
        assign_splits(conversations, where=str(path))
    except MemtuneError as error:
        return [str(error)]
    return []
