"""Files in other tools' layouts. Of large ones the file is mapped, not read, and a row is parsed in its turn."""

from __future__ import annotations

import json
import mmap
from codecs import BOM_UTF8
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from experiments.data.dataset_reader import Ids, Reading
from tracing.errors import DataError
from tracing.files.file_kinds import whole_characters
from tracing.files.opening import open_file, read_file

_EVERY = 1 << 22
"""Bytes between two calls of the progress."""

T = TypeVar("T")


class FileLayout(BaseModel):
    """A part of a file in another tool's layout; keys that are not named are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


Row = TypeVar("Row", bound=BaseModel)


def json_rows(path: Path, model: type[Row], reading: Reading, expected: str) -> Iterator[tuple[str, Row]]:
    """The elements of a JSON array, or the lines of a JSONL file: each sound one, with its place.

    A place is `FILE: 3` in an array, `FILE:4` for a line. `expected` says in problems what the file should be.

    Raises:
        DataError: the file cannot be read as either.
    """
    read_bytes = announced_bytes = 0
    size = path.stat().st_size if path.is_file() else 0
    for where, raw in _raw_rows(path, expected):
        try:
            yield where, _read_row(model, raw)
        except ValidationError as error:
            reading.invalid(where, error, expected)
        read_bytes += len(raw)
        if read_bytes - announced_bytes >= _EVERY:
            announced_bytes = read_bytes
            reading.advanced(read_bytes, size)


def _read_row(model: type[Row], raw: bytes) -> Row:
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        if error.errors()[0]["type"] != "json_invalid":
            raise
    return model.model_validate_json(whole_characters(raw))


def rows_by_id(
    path: Path, model: type[Row], reading: Reading, expected: str, *, kind: str, key: str, noun: str
) -> Iterator[tuple[str, Row]]:
    """Those of `json_rows` whose `key`, the id of a `kind`, no row before has; a file without any `noun` is reported.

    Raises as `json_rows`.
    """
    ids, is_empty = Ids(reading), True
    for where, row in json_rows(path, model, reading, expected):
        is_empty = False
        if ids.new(kind, getattr(row, key), key, where.removeprefix(f"{path}: "), where):
            yield where, row
    if is_empty:
        reading.problem(f"{path}: holds no {noun}; {expected}")


def _raw_rows(path: Path, expected: str) -> Iterator[tuple[str, bytes]]:
    try:
        with open_file(path) as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror or 'it is no file on a disk'}); give --data a file"
        ) from None
    except ValueError:  # an empty file cannot be mapped
        raise DataError(f"{path}: is empty; {expected}") from None
    # The mapping is closed when nothing points into it any more.
    start = content[:64].lstrip(BOM_UTF8 + b" \t\r\n")[:1]
    if start == b"{" or _is_list_a_line(content):
        yield from _lines(path, content)
        return
    try:
        elements = _elements(memoryview(content)[_begin(content) :])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not JSON ({error}); {expected}") from None
    for place, element in enumerate(elements):
        yield f"{path}: {place}", bytes(element)


def _elements(array: memoryview) -> list[msgspec.Raw]:
    try:
        return msgspec.json.decode(array, type=list[msgspec.Raw])
    except msgspec.DecodeError:
        return msgspec.json.decode(whole_characters(bytes(array)), type=list[msgspec.Raw])


def _lines(path: Path, content: mmap.mmap) -> Iterator[tuple[str, bytes]]:
    content.seek(_begin(content))
    first = content.readline()
    if not first.rstrip().endswith((b"}", b"]")):  # one object over several lines
        yield str(path), first + content.read()
        return
    for number, line in enumerate(chain((first,), iter(content.readline, b"")), start=1):
        if line.strip():
            yield f"{path}:{number}", line


def _begin(content: mmap.mmap) -> int:
    """Where the text begins: behind the mark that some editors write."""
    return len(BOM_UTF8) if content[: len(BOM_UTF8)] == BOM_UTF8 else 0


def _is_list_a_line(content: mmap.mmap) -> bool:
    """Whether the first line is a whole list and another follows, so that a row is a line."""
    end = content.find(b"\n")
    return (
        end > 0 and content[max(0, end - 9) : end].rstrip()[-1:] == b"]" and content[end : end + 9].lstrip()[:1] == b"["
    )


def read_document(path: Path, layout: TypeAdapter[T], reading: Reading, expected: str) -> T | None:
    """The content of a small JSON file; None, with its problems reported, where it is unreadable or something else."""
    try:
        return layout.validate_python(json.loads(read_file(path).decode("utf-8-sig")))
    except OSError as error:
        reading.problem(f"{path}: cannot be read ({error.strerror}); {expected}")
    except ValidationError as error:
        reading.invalid(str(path), error, expected)
    except (ValueError, RecursionError) as error:
        reading.problem(f"{path}: not JSON ({error}); {expected}")
    return None
