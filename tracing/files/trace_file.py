"""A trace file that grows by whole lines."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from tracing.errors import TraceError

_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EFBIG)
"""Failures to open a file that may pass, such as a full disk."""


class TraceFile:
    """A new file that grows by whole lines.

    Raises:
        TraceError: it holds something already, or cannot be a file at all.
        OSError: it cannot be written at present.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno in _PASSING:
                raise
            raise TraceError(f"{path}: cannot be opened for a trace: {error.strerror}; give another path") from error
        self._size = os.fstat(self._file).st_size
        if self._size:
            os.close(self._file)
            raise TraceError(f"{path}: holds data already; a trace never overwrites, so delete it or give another path")

    def append(self, lines: Sequence[bytes]) -> tuple[int, OSError | None]:
        """Hand lines to the operating system, so that the death of this process cannot lose them.

        Returns:
            how many of them are in the file, and why not all; a line that got in by half is taken out again.
        """
        data = memoryview(b"".join(lines))
        sent = 0
        try:
            while sent < len(data):
                sent += os.write(self._file, data[sent:])
        except OSError as error:
            whole = count = 0
            for line in lines:
                if whole + len(line) > sent:
                    break
                whole, count = whole + len(line), count + 1
            self._size += whole
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            return count, error
        self._size += sent
        return len(lines), None

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
