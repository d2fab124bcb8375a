"""Files of an export: text byte by byte, without translated newlines, and folders that are written whole or not."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracing.errors import RunError


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, with the newlines that it has."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with the newlines that it has."""
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"not UTF-8 at byte {error.start}"
        raise RunError(f"{path}: cannot be read ({reason}); give a UTF-8 text file") from None


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """An empty folder to write into. When the block ends it becomes `out`; after an error nothing is left of it.

    Raises:
        RunError: `out` holds something already, or cannot be written.
    """
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise RunError(f"{out}: exists already; give --out a new folder, such as {out}-2")
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
            folder = Path(scratch) / "whole"
            folder.mkdir()
            yield folder
            if out.exists():
                out.rmdir()
            os.replace(folder, out)
    except OSError as error:
        raise RunError(
            f"{error.filename or out}: cannot be written ({error.strerror}); give --out another folder"
        ) from None
