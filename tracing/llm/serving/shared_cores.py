"""Cores that the programs of one machine share: how many others leave free, and turns at work that keeps all busy.

Two programs of one user that keep every core busy are slower at once than one after the other: their threads wait for
each other at every step, and the other thread may not be running. A turn is a file lock, which the system releases
however its holder ends.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_log = logging.getLogger(__name__)
_SAMPLE_S = 0.2
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_OLD_QUOTA = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
_OLD_PERIOD = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")


def allowed_cores() -> int:
    """The cores this process may use: its affinity, or the quota of its container if that is less."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        if _QUOTA.exists():
            quota, period = _QUOTA.read_text().split()
        else:
            quota, period = _OLD_QUOTA.read_text(), _OLD_PERIOD.read_text()
        limit = int(quota) // int(period)
    except (OSError, ValueError, ArithmeticError):
        return cores
    return max(1, min(cores, limit)) if int(quota) > 0 else cores


class FreeCores:
    """The number of cores that other processes left free when last measured.

    Attributes:
        count: at least one, and no more than this process may use.
    """

    def __init__(self) -> None:
        """Measure for a moment."""
        self.count = 1
        with self.observed():
            time.sleep(_SAMPLE_S)

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Update `count` by what other processes compute while the block runs.

        It is rounded, since processes that compete with this one get less than they want: one busy process beside two
        threads of ours on two cores gets two thirds of a core, and counts as a whole one.
        """
        began, busy, own = _times()
        try:
            yield
        finally:
            ended, busy_then, own_then = _times()
            others = max(0.0, (busy_then - busy) - (own_then - own)) / max(ended - began, 1e-3)
            self.count = max(1, min(allowed_cores(), round((os.cpu_count() or 1) - others)))


def _times() -> tuple[float, float, float]:
    """Now, and the seconds that all cores together and this process have computed so far."""
    import psutil

    times = psutil.cpu_times()
    return time.monotonic(), times.user + times.system + getattr(times, "nice", 0.0), time.process_time()


LONGEST_WAIT_S = 120.0
"""If a turn takes longer, its holder counts as suspended, and the others continue without it.

Each further wait in vain is half as long, so that a suspended program costs little, and one that goes on is waited for.
"""

TOLD_AFTER_S = 10.0
"""Wait after which it is told, once, why nothing goes on."""

_LOOK_S = 0.02


class Turns:
    """Gives turns to the processes that use the same folder on the same machine."""

    def __init__(self, folder: Path) -> None:
        """`folder` may be shared with other machines; it is created for the first turn."""
        machine = re.sub(r"[^\w.-]", "_", platform.node())
        self._current = folder / f"turn-{machine}.lock"
        self._next = folder / f"turn-{machine}.next.lock"
        self._patience, self._told = LONGEST_WAIT_S, False

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

        began = time.monotonic()
        until = began + self._patience

        def look() -> bool:
            check()
            if not self._told and time.monotonic() - began > TOLD_AFTER_S:
                self._told = True
                _log.warning(
                    "another memtune process on this machine is using the embedded model; this one waits for its turn"
                )
            return False

        current, following = FileLock(self._current), FileLock(self._next)
        try:
            with suppress(OSError):
                self._current.parent.mkdir(parents=True, exist_ok=True)
                try:
                    # One lock would return, again and again, to the process that has just released it. With two, that
                    # process must first become next in line, where another one already is.
                    for lock in (following, current):
                        left = max(0.0, until - time.monotonic())
                        lock.acquire(left, _LOOK_S, cancel_check=look)
                    self._patience = LONGEST_WAIT_S
                except Timeout:
                    self._patience /= 2
                finally:
                    following.release()
            yield
        finally:
            current.release()
