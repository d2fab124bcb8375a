"""One process at a time on a run's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from tracing.errors import RunError


class HeldError(RunError):
    """Another process holds the lock."""


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
        holder = path.read_text(errors="replace").strip() or "unknown"
        raise HeldError(
            f"{path.parent}: process {holder} is working on this run; wait for it, or end it first"
        ) from None
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror}); make its folder writable") from None
    with lock:
        path.write_text(str(os.getpid()))
        yield
