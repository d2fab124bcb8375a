"""What of a data set under way is done: a file beside it, a line for each part, by which a later pass goes on."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path

from experiments.data.generating.drafting import SessionRows
from tracing.errors import DataError
from tracing.systems.conversations import Question

ENDING = ".progress"
"""What the name of the data set has behind it there."""


class FinishedParts:
    """The finished parts by their keys; a line that was cut off by a kill is a part that is not finished.

    Args:
        out: the file of the data set.

    Raises:
        DataError: `out` exists and no pass on it is under way, or the file cannot be read.
    """

    def __init__(self, out: Path) -> None:
        check_out(out)
        self._path = out.with_name(out.name + ENDING)
        self._lock = threading.Lock()
        self._parts: dict[str, SessionRows] = {}
        if self._path.exists():
            self._read()

    def _read(self) -> None:
        try:
            lines = self._path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError):
            raise DataError(f"{self._path}: cannot be read; remove it to begin again") from None
        for line in lines[:-1]:
            try:
                row = json.loads(line)
                questions = [Question.model_validate(question) for question in row["rows"]]
                part = SessionRows(questions, Counter(row["dropped"]), Counter(row["drafts"]), row["session"])
            except (ValueError, KeyError, TypeError):
                continue  # it is done again
            self._parts[row["key"]] = part

    def get(self, key: str) -> SessionRows | None:
        """A part; None if it is not finished."""
        return self._parts.get(key)

    def add(self, key: str, part: SessionRows) -> None:
        """Keep a part."""
        rows = [question.model_dump(mode="json", exclude_defaults=True) for question in part.rows]
        counts = {"dropped": part.dropped, "drafts": part.drafts, "session": part.is_session}
        line = json.dumps({"key": key, "rows": rows, **counts})
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            # A line that a kill cut off ends here, and is no part of this one.
            file.write(line + "\n" if not self._torn() else "\n" + line + "\n")
            self._parts[key] = part

    def _torn(self) -> bool:
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            file.seek(max(0, size - 1))
            return size > 0 and file.read(1) != b"\n"

    def close(self) -> None:
        """Everything is finished: the file is not needed any more."""
        self._path.unlink(missing_ok=True)


def check_out(out: Path) -> None:
    """Refuse, in a `DataError`, a file that is there and of no unfinished pass, or in a folder that is not there."""
    if out.exists() and not out.with_name(out.name + ENDING).exists():
        raise DataError(f"{out}: is there already; give --out another file, or remove it")
    if not out.parent.is_dir():
        raise DataError(f"{out.parent}: is no folder; make it, or give --out a file in another one")
