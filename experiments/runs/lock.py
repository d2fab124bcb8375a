"""One process at a time on a run's folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from tracing.errors import RunError


class HeldError(RunError):
    """Another process holds the lock."""


def holder(path: Path) -> str | None:
    """Id of the process that holds the lock file `path`, as that names it; None if none does."""
    try:
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().decode(errors="replace").strip() or "unknown"
    except OSError:
        pass  # never held, or on a disk without locks
    return None


@contextmanager
def locked(path: Path, *, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock file `path`, which names the holding process. The system releases it however the process ends.

    Raises:
        HeldError: another process holds it.
        RunError: its folder cannot be written to.
    """
    try:
        lock = FileLock(path).acquire(timeout=wait_s)
    except Timeout:
        process = path.read_text(errors="replace").strip() or "unknown"
        raise HeldError(
            f"{path.parent}: process {process} is working on this run; wait for it, or end it first"
        ) from None
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror}); make its folder writable") from None
    with lock:
        path.write_text(str(os.getpid()))
        yield
