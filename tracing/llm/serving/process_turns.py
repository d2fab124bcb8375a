"""Programs of one user on one machine take turns at work that keeps every core busy.

Two such programs at once are slower than one after the other: their threads wait for each other at every step, and the
other thread may not be running. A turn is a file lock, which the system releases however its holder ends.
"""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import FileLock

LONGEST_WAIT_S = 120.0
"""If a turn takes longer, its holder counts as suspended, and the others continue without it.

Each further wait in vain is half as long, so that a suspended program costs little, and one that goes on is waited for.
"""

_LOOK_S = 0.02


class Turns:
    """Gives turns to the processes that use the same folder on the same machine."""

    def __init__(self, folder: Path) -> None:
        """`folder` may be shared with other machines; it is created for the first turn."""
        machine = re.sub(r"[^\w.-]", "_", platform.node())
        self._current = folder / f"turn-{machine}.lock"
        self._next = folder / f"turn-{machine}.next.lock"
        self._patience = LONGEST_WAIT_S

    @contextmanager
    def turn(self, check: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Wait for a turn, and keep it until the block ends.

        A process that asks again waits behind those already waiting. If the folder cannot hold a lock, or a turn does
        not end, the block runs without one.

        Args:
            check: called while waiting; an error it raises ends the wait.
        """
        # Not everything that can ask a model embeds one, and has the package.
        from filelock import FileLock, Timeout

        until = time.monotonic() + self._patience
        current, following = FileLock(self._current), FileLock(self._next)
        try:
            with suppress(OSError):
                self._current.parent.mkdir(parents=True, exist_ok=True)
                try:
                    # One lock would return, again and again, to the process that has just released it. With two, that
                    # process must first become next in line, where another one already is.
                    _take(following, until, check)
                    _take(current, until, check)
                    self._patience = LONGEST_WAIT_S
                except Timeout:
                    self._patience /= 2
                finally:
                    following.release()
            yield
        finally:
            current.release()


def _take(lock: FileLock, until: float, check: Callable[[], object]) -> None:
    from filelock import Timeout

    while True:
        check()
        with suppress(Timeout):
            lock.acquire(blocking=False)
            return
        if time.monotonic() >= until:
            raise Timeout(lock.lock_file)
        time.sleep(_LOOK_S)
