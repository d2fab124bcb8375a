"""Rows of large JSON files, one at a time: the file is mapped, not read, and a row is parsed when its turn comes."""

from __future__ import annotations

import json
import mmap
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from pydantic import BaseModel, TypeAdapter, ValidationError

from experiments.data.reading import Reading
from tracing.errors import DataError

_EVERY = 1 << 22
"""Bytes between two calls of the progress."""


Row = TypeVar("Row", bound=BaseModel)


class JsonRows(Generic[Row]):
    """The elements of a JSON array, or the lines of a JSONL file, as models.

    Args:
        path: a file.
        model: of one row.
        expected: what is expected of the file, such as `the layout of LongMemEval`.
        remedy: how to correct it.
    """

    def __init__(self, path: Path, model: type[Row], reading: Reading, *, expected: str, remedy: str) -> None:
        self._path, self._model, self._reading = path, model, reading
        self._expected, self._remedy = expected, remedy

    def __iter__(self) -> Iterator[tuple[str, Row]]:
        """Each sound row with its place: `FILE: 3` in an array, `FILE:4` for a line.

        Raises:
            DataError: the file cannot be read as either.
        """
        adapter = TypeAdapter(self._model)
        read_bytes = announced_bytes = 0
        size = self._path.stat().st_size if self._path.is_file() else 0
        for where, raw in self._rows():
            try:
                yield where, adapter.validate_json(raw)
            except ValidationError as error:
                self._reading.invalid(where, error, f"{self._expected} is expected, {self._remedy}")
            read_bytes += len(raw)
            if read_bytes - announced_bytes >= _EVERY:
                announced_bytes = read_bytes
                self._reading.advanced(read_bytes, size)

    def _rows(self) -> Iterator[tuple[str, bytes]]:
        try:
            with self._path.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise DataError(f"{self._path}: cannot be read ({error.strerror}); give --data a file") from None
        except ValueError:  # an empty file cannot be mapped
            raise DataError(f"{self._path}: is empty; {self._expected} is expected, {self._remedy}") from None
        # The mapping is closed when nothing points into it any more.
        start = content[:64].lstrip(BOM_UTF8 + b" \t\r\n")[:1]
        return self._lines(content) if start == b"{" or _is_list_a_line(content) else self._elements(content)

    def _elements(self, content: mmap.mmap) -> Iterator[tuple[str, bytes]]:
        try:
            elements = msgspec.json.decode(memoryview(content)[_begin(content) :], type=list[msgspec.Raw])
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise DataError(f"{self._path}: not JSON ({error}); {self._expected} is expected, {self._remedy}") from None
        for place, element in enumerate(elements):
            yield f"{self._path}: {place}", bytes(element)

    def _lines(self, content: mmap.mmap) -> Iterator[tuple[str, bytes]]:
        content.seek(_begin(content))
        first = content.readline()
        if not first.rstrip().endswith((b"}", b"]")):  # one object over several lines
            yield str(self._path), first + content.read()
            return
        line, number = first, 1
        while line:
            if line.strip():
                yield f"{self._path}:{number}", line
            line, number = content.readline(), number + 1


def _begin(content: mmap.mmap) -> int:
    """Where the text begins: behind the mark that some editors write."""
    return len(BOM_UTF8) if content[: len(BOM_UTF8)] == BOM_UTF8 else 0


def _is_list_a_line(content: mmap.mmap) -> bool:
    """Whether the first line is a whole list and another follows, so that a row is a line."""
    end = content.find(b"\n")
    return (
        end > 0 and content[max(0, end - 9) : end].rstrip()[-1:] == b"]" and content[end : end + 9].lstrip()[:1] == b"["
    )


def document(path: Path, *, expected: str, remedy: str) -> Any:
    """The whole JSON of a small file.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error}); {expected} is expected, {remedy}") from None
