"""Files that a user names are opened here: a path may lead to a pipe nobody writes to, or a device without end."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import time
from pathlib import Path
from typing import BinaryIO

from tracing.errors import MemtuneError, RunError

_WAIT_S = 5.0
"""For the first writer of a pipe."""

_MOST_OF_DEVICE = 1 << 20
_MOST_OF_PIPE = 1 << 30
_PIECE = 1 << 16


def open_file(path: Path) -> BinaryIO:
    """A file opened for reading. A pipe, such as `/dev/stdin`, and a device are read to their end first.

    Raises:
        OSError: it cannot be opened, nobody writes to the pipe, or what the device gives does not end.
    """
    if stat.S_ISREG(path.stat().st_mode):
        return path.open("rb")
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        mode = os.fstat(file).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
            raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "is no file", str(path))
        return io.BytesIO(_content_of_pipe(path, file) if stat.S_ISFIFO(mode) else _content_of_device(path, file))
    finally:
        os.close(file)


def read_file(path: Path) -> bytes:
    """The content of a file. Raises as `open_file`."""
    with open_file(path) as file:
        return file.read()


def read_text(path: Path, remedy: str = "give a UTF-8 text file", error: type[MemtuneError] = RunError) -> str:
    """The text of a UTF-8 file, with the newlines that it has. Raises `error` with the reason and the remedy."""
    try:
        return read_file(path).decode()
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else f"not UTF-8 at byte {failure.start}"
        raise error(f"{path}: cannot be read ({reason}); {remedy}") from None


def _content_of_pipe(path: Path, file: int) -> bytes:
    content, until = bytearray(), time.monotonic() + _WAIT_S
    written = False
    while len(content) <= _MOST_OF_PIPE:
        try:
            piece = os.read(file, _PIECE)
        except BlockingIOError:  # somebody will write
            written = True
            select.select([file], [], [])
            continue
        content += piece
        if not piece and (written or content):
            return bytes(content)
        if not piece:
            if time.monotonic() > until:
                raise OSError(errno.EPIPE, "it is a pipe that nobody writes to", str(path))
            time.sleep(0.05)
    raise OSError(errno.EFBIG, "it is a pipe whose content does not end", str(path))


def _content_of_device(path: Path, file: int) -> bytes:
    content = bytearray()
    while len(content) <= _MOST_OF_DEVICE:
        try:
            piece = os.read(file, _PIECE)
        except BlockingIOError:  # a terminal, whose user types
            select.select([file], [], [])
            continue
        if not piece:
            return bytes(content)
        content += piece
    raise OSError(errno.EFBIG, "it is a device whose content does not end", str(path))
