"""How many threads a computation on the CPU may use: as many as other processes leave cores free."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
