"""What a reader of data sets reports beside the conversations: problems, omissions and progress."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pydantic import BaseModel, ValidationError

from tracing.errors import DataError, MemtuneError, in_one_line
from tracing.files.file_kinds import SMARTCOMMENT, likeness
from tracing.systems.conversations import Conversation, DialogueSession, Question, problems_of

Progress = Callable[[int, int], None]
"""Called with what is done and the total."""


class Reading:
    """One pass over a data set.

    Args:
        problems: gathers every problem, and reading goes on with the next row; without it the first one is raised.
        progress: called as the file is read.

    Example:
        >>> problems = []
        >>> Reading(problems=problems).problem("mine.jsonl:3: id: is missing; give the conversation an id")
        >>> problems
        ['mine.jsonl:3: id: is missing; give the conversation an id']
    """

    def __init__(self, *, problems: list[str] | None = None, progress: Progress | None = None) -> None:
        self._problems = problems
        self._progress = progress
        self._left_out: dict[str, Counter[str]] = defaultdict(Counter)

    def problem(self, message: str) -> None:
        """Report a problem: file, line or key, what is wrong, and how to correct it.

        Raises:
            DataError: problems are not gathered.
        """
        if self._problems is None:
            raise DataError(message)
        self._problems.append(message)

    @property
    def count(self) -> int:
        """How many problems were gathered."""
        return len(self._problems or ())

    def instead(self, since: int, message: str) -> None:
        """Report one problem in place of those gathered since there were so many."""
        if self._problems is not None:
            self._problems[since:] = [message]

    def invalid(self, where: str, error: ValidationError, remedy: str, model: type[BaseModel] | None = None) -> None:
        """Report every problem of a row that a model refused. `where` is the file with the line or place of the row."""
        for problem in problems_of(error, model):
            self.problem(f"{where}: {problem}; {remedy}")

    def unreadable(self, error: MemtuneError, remedy: str) -> None:
        """Report a file that a reader of something else refused; `remedy` is added where the message has none."""
        message = in_one_line(error)
        self.problem(message if "; " in message else f"{message}; {remedy}")

    def left_out(self, conversation: str, reason: str, count: int = 1) -> None:
        """Note what of a conversation is not used, such as `questions without a gold answer`."""
        if count:
            self._left_out[conversation][reason] += count

    def advanced(self, completed: int, total: int) -> None:
        """Say how far the reading is."""
        if self._progress is not None:
            self._progress(completed, total)

    @property
    def omissions(self) -> Mapping[str, Mapping[str, int]]:
        """By conversation: what was left out, and how often."""
        return self._left_out

    def omitted(self) -> list[str]:
        """What was left out of all conversations together, a line for each kind of thing."""
        totals = Counter[str]()
        for counts in self._left_out.values():
            totals.update(counts)
        return omission_lines(totals)


def omission_lines(left_out: Mapping[str, int]) -> list[str]:
    """What was left out and how often, for people to read."""
    return [f"{number} {reason} left out" for reason, number in left_out.items() if number]


Read = Callable[[Path, Reading], Iterable[Conversation | None]]
"""Gives the conversations of a file or folder, None for what cannot be one.

Problems, which name file, line or key, and remedy, go to the `Reading`; a `DataError` is for what is unreadable.
"""


@runtime_checkable
class Reports(Protocol):
    """A data set that reports beside its conversations what `Reading` takes; optional for a `DatasetLoader`."""

    def read(self, path: Path | None, reading: Reading, /) -> Iterable[Conversation]:
        """As the loader itself; with gathered problems, rows that are sound are still given."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """A data set that is read from a file or folder; problems name it."""

    name: str
    reads: Read

    def __call__(self, path: Path | None) -> Iterable[Conversation]:
        return self.read(path, Reading())

    def read(self, path: Path | None, reading: Reading) -> Iterator[Conversation]:
        """The conversations in `path`; of a file that gives none, what it looks like is the problem.

        Raises:
            DataError: there is no path, or it cannot be read; and what `reading` raises.
        """
        if path is None:
            raise DataError(f"{self.name}: no file; name it with --data FILE")
        before, empty = reading.count, True
        try:
            for conversation in filter(None, self.reads(path, reading)):
                empty = False
                yield conversation
        except DataError:
            foreign = _foreign(self.name, path) if empty else ""
            if not foreign:
                raise
            raise DataError(foreign) from None
        if empty and reading.count > before and (foreign := _foreign(self.name, path)):
            reading.instead(before, foreign)


def _foreign(name: str, path: Path) -> str:
    own = SMARTCOMMENT if name in ("memeval", "memtracebench") else name
    looks = likeness(path, own, "json", "broken", "empty") if path.is_file() else ""
    return f"{path}: is not the data set {name}; {looks}" if looks else ""


def build_conversation(
    where: str,
    remedy: str,
    reading: Reading,
    name: str,
    sessions: Sequence[DialogueSession],
    questions: Sequence[Question],
    **others: object,
) -> Conversation | None:
    """A conversation of these values; None, with its problems reported, where they break a rule of conversations.

    Its speakers are those of the turns, unless given among the other values.
    """
    speakers = dict.fromkeys(turn.speaker for session in sessions for turn in session.turns)
    values = {"id": name, "speakers": (*speakers,), "sessions": (*sessions,), "questions": (*questions,)}
    try:
        return Conversation.model_validate(values | others)
    except ValidationError as error:
        reading.invalid(where, error, remedy)
        return None


class Ids:
    """Ids seen so far in a data set, so that one given twice is reported."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._seen: dict[tuple[str, str], str] = {}

    def new(self, kind: str, name: str, key: str, at: str, where: str) -> bool:
        """Whether no other `kind` (`conversation` or `question`) has this id; one that has is reported.

        The message names the `key` that gives the id, `where` it is, and the place `at` which the other one is.
        """
        first = self._seen.setdefault((kind, name), at)
        if first != at:
            self._reading.problem(f"{where}: {key}: {name!r} is that of {first} too; give each {kind} its own id")
        return first == at
