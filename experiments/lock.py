"""One process at a time on a run's folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracing.errors import RunError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`. The system lets go of it when the process ends, however it ends.

    Raises:
        RunError: another process holds it.
    """
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise RunError(
                f"{path.parent}: process {holder} is working on this run; wait for it, or end it first"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
