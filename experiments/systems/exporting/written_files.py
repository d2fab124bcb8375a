"""Reading and writing text files byte by byte: no newline is translated."""

from __future__ import annotations

from pathlib import Path

from tracing.errors import RunError


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, with the newlines that it has."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with the newlines that it has.

    Raises:
        RunError: it cannot be read.
    """
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"not UTF-8 at byte {error.start}"
        raise RunError(f"{path}: cannot be read ({reason}); give a UTF-8 text file") from None
