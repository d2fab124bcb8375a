"""Ctrl-C and SIGTERM: a command ends once its calls under way have ended, and at once if it is asked again."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tracing.llm.workers import THREAD

INTERRUPTED = 130
"""Exit code of a command that was interrupted."""

_STDERR = 2
_SHOW_CURSOR = b"\x1b[?25h"


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn both signals into a `KeyboardInterrupt`, and say so where calls under way are finished first.

    The next signal then ends the process as a kill would, which loses no more than those calls.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    finishing = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal finishing
        if finishing:
            _tell("stopped; finished calls are kept, and a run goes on with: memtune run --resume RUN")
            os._exit(INTERRUPTED)
        finishing = any(thread.name == THREAD for thread in threading.enumerate())
        if finishing:
            _tell("finishing the calls under way; press Ctrl-C again to stop now")
        raise KeyboardInterrupt

    # What a shell started in the background keeps ignoring Ctrl-C.
    numbers = [each for each in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(message: str) -> None:
    """Write a line past Python's buffers, which the interrupted code may be writing to, and past a progress bar."""
    line = f"memtune: {message}\n".encode()
    os.write(_STDERR, _SHOW_CURSOR + b"\n" + line if os.isatty(_STDERR) else line)
