"""Rows of users' tables, as CSV or as JSON lines, each checked against a model."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.fields import FieldInfo

from experiments.data.reading import Reading
from tracing.errors import DataError
from tracing.suggestions import unknown_key

SEPARATOR = "|"
"""Between several values in one cell of a CSV file."""

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

    Raises:
        DataError: a file cannot be read.
    """
    files = [path for ending in ("csv", "jsonl") if (path := folder / f"{name}.{ending}").is_file()]
    if len(files) > 1:
        reading.problem(f"{folder}: has {files[0].name} and {files[1].name}; keep one of them")
    for path in files[:1]:
        yield from rows_of(path, model, reading)


def rows_of(path: Path, model: type[Row], reading: Reading, remedy: str = _REMEDY) -> Iterator[tuple[str, str, Row]]:
    """The sound rows of a file, as `rows_in`: of a table if its name ends in `.csv`, else of JSON lines.

    Raises:
        DataError: it cannot be read.
    """
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
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if line.strip():
            yield number, line


def _csv_rows(path: Path, model: type[Row], reading: Reading) -> Iterator[tuple[int, dict[str, str]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
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
    for name in header:
        if name not in fields:
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
