"""The format of each file that memtune keeps: its number now, how it is written into a file, and read of one.

A file without a number is of the first commits, and read by its names of then (`experiments.runs.earlier_names`).
Raise a number when a reader of the number before would misread the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tracing.errors import MemtuneError, RunError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FORMATS: Mapping[str, int] = {
    "config.yaml": 1,
    "summary.json": 1,
    "fingerprint.json": 1,
    "rewrites.jsonl": 1,
    "cases.jsonl": 1,
    "verdicts.jsonl": 1,
    "ledger.jsonl": 1,
    "progress.json": 1,
    "mlflow-outbox.jsonl": 1,
    "ladder.json": 1,
    "figures.json": 1,
    "settings.json": 1,
    "responses.sqlite": 1,
    "snapshot": 2,
    "trace": 2,
    "attributions": 1,
    "labels": 1,
    "trace memory": 1,
    "export": 1,
}
"""By the name of the file, or by what it holds. Prompts are plain text, and studies and the store those of others."""

KEY = "format"

_Value = TypeVar("_Value")


def check_format(kind: str, number: int, path: object, error: type[MemtuneError] = RunError) -> None:
    """Raise `error` if a file is of a later format than this memtune reads."""
    if number > FORMATS[kind]:
        raise error(
            f"{path}: written by a later memtune (format {number}, this one reads {FORMATS[kind]}); upgrade memtune"
        )


def stamped(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON values with the number of their format."""
    return {KEY: FORMATS[kind], **values}


def unstamped(kind: str, values: Any, path: object, error: type[MemtuneError] = RunError) -> Any:
    """JSON values, or rows of them, without the number of their format; `error` if it is a later one."""
    if isinstance(values, list):
        return [unstamped(kind, row, path, error) for row in values]
    if not isinstance(values, dict) or type(values.get(KEY)) is not int:
        return values
    check_format(kind, values[KEY], path, error)
    return {name: value for name, value in values.items() if name != KEY}


def read_stamped(kind: str, data: bytes, path: Path | str, reader: TypeAdapter[_Value]) -> _Value:
    """What a JSON file or line holds.

    Raises:
        RunError: it is of a later format.
        ValidationError: it is damaged.
    """
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return reader.validate_json(data)  # which says what is wrong
    return reader.validate_python(unstamped(kind, values, path))
