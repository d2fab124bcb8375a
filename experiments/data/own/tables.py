"""Users' tables, as CSV or as JSON lines, each row checked against a model; the questions beside conversations."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo

from experiments.data.dataset_reader import Ids, Reading
from tracing.errors import DataError
from tracing.files.opening import open_file, read_file
from tracing.strict_models import StrictModel
from tracing.suggestions import unknown_key
from tracing.systems.conversations import Question

SEPARATOR = "|"
"""Between several values in one cell of a CSV file."""

QUESTIONS = "questions"
_REMEDY = "see docs/data-format.md"

Row = TypeVar("Row", bound=BaseModel)


def _as_texts(raw: Any) -> Any:
    if isinstance(raw, str):
        return tuple(part for cell in raw.split(SEPARATOR) if (part := cell.strip()))
    return raw


TextList = Annotated[tuple[str, ...], BeforeValidator(_as_texts)]
"""Several texts: a list in JSON, separated by `|` in CSV."""


def _as_text(raw: Any) -> Any:
    return "" if raw is None else str(raw) if isinstance(raw, int | float) else raw


OptionalText = Annotated[str, BeforeValidator(_as_text)]
"""A text that may be left out: null in JSON is as absent, and a number its digits."""


def rows_in(folder: Path, name: str, model: type[Row], reading: Reading) -> Iterator[tuple[str, str, Row]]:
    """The sound rows of `NAME.csv` or `NAME.jsonl` in a folder, each with its place (`FILE:3`, `line 3`).

    Neither file is no row; both are a problem.
    """
    files = [path for ending in ("csv", "jsonl") if (path := folder / f"{name}.{ending}").is_file()]
    if len(files) > 1:
        reading.problem(f"{folder}: has {files[0].name} and {files[1].name}; keep one of them")
    for path in files[:1]:
        yield from rows_of(path, model, reading)


def rows_of(path: Path, model: type[Row], reading: Reading, remedy: str = _REMEDY) -> Iterator[tuple[str, str, Row]]:
    """The sound rows of a file, as `rows_in`: of a table if its name ends in `.csv`, else of JSON lines."""
    raw_rows = _csv_rows(path, model, reading) if path.suffix == ".csv" else _json_rows(path)
    try:
        for number, raw in raw_rows:
            try:
                row = model.model_validate_json(raw) if isinstance(raw, str) else model.model_validate(raw)
            except ValidationError as error:
                reading.invalid(f"{path}:{number}", error, remedy, model)
                continue
            yield f"{path}:{number}", f"line {number}", row
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None


def _json_rows(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(read_file(path).decode("utf-8-sig").split("\n"), start=1):
        if line.strip():
            yield number, line


def _csv_rows(path: Path, model: type[Row], reading: Reading) -> Iterator[tuple[int, dict[str, str]]]:
    with TextIOWrapper(open_file(path), encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        table = csv.reader(chain((first,), file), strict=True, delimiter=_delimiter(first, model))
        try:
            header = [_column(name, model) for name in next(table, [])]
            if not _fits(path, header, model, reading):
                return
            while True:
                number = table.line_num + 1
                cells = next(table, None)
                if cells is None:
                    return
                if len(cells) > len(header) and any(cell.strip() for cell in cells):
                    reading.problem(
                        f"{path}:{number}: has {len(cells)} cells under {len(header)} columns; "
                        "quote a text that has a comma"
                    )
                    continue
                # An empty cell says nothing, as a key that is absent.
                values = {key: cell for key, cell in zip(header, cells, strict=False) if cell.strip()}
                if values:
                    yield number, values
        except csv.Error as error:
            raise DataError(
                f"{path}:{table.line_num}: not CSV ({error}); correct the quotes there, or write {path.stem}.jsonl"
            ) from None


def _delimiter(header: str, model: type[BaseModel]) -> str:
    """What stands between the columns of a table: a comma, or a semicolon or tab as some spreadsheets write."""
    columns = {sign: {_column(name.strip('"\r\n '), model) for name in header.split(sign)} for sign in ",;\t"}
    return max(columns, key=lambda sign: len(columns[sign] & _fields(model).keys()))


def _column(name: str, model: type[BaseModel]) -> str:
    """The name of a column as the model has it, in whatever case it is written."""
    return next((field for field in _fields(model) if field.casefold() == name.strip().casefold()), name.strip())


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by the names of their columns."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _fits(path: Path, header: list[str], model: type[BaseModel], reading: Reading) -> bool:
    """Whether the header of a table has the columns it needs, and no others; problems are reported."""
    fields = _fields(model)
    sound = True
    for place, name in enumerate(header, start=1):
        if not name:
            reading.problem(f"{path}:1: column {place} has no name; give it one, or remove it")
            sound = False
        elif name not in fields:
            reading.problem(f"{path}:1: {name}: {unknown_key((name,), model)}; {_REMEDY}")
            sound = False
        elif header.count(name) > 1:
            reading.problem(f"{path}:1: {name}: the column is there twice; remove one of them")
            sound = False
    for name, field in fields.items():
        if field.is_required() and name not in header:
            reading.problem(f"{path}:1: {name}: the column is missing; add it, {_REMEDY}")
            sound = False
    return sound


class QuestionRow(StrictModel):
    """One question; `conversation` is the id of the conversation it is about."""

    conversation: str
    question: str = Field(min_length=1)
    answers: TextList = Field(min_length=1)
    id: str = ""
    kind: str = "stable"
    evidence: TextList = ()
    supersedes: bool = False
    unanswerable: bool = False
    after_session: OptionalText = ""
    fact: str = ""

    def to_question(self, number: int) -> Question:
        """The same as a question; the `number` of its row makes an id where it has none."""
        values = self.model_dump(exclude={"conversation", "id", "fact", "after_session"})
        values |= {"fact": self.fact or None, "after_session": self.after_session or None}
        return Question(id=self.id or f"{self.conversation}-q{number}", **values)


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
