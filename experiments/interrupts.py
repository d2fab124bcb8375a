"""Ctrl-C and SIGTERM: a command ends once its calls under way have ended, and at once if it is asked again.

A process that is there for one command also minds what comes before and after it: Python's own handling would end it
with a traceback while modules are imported, and lose the exit code of a command that is done while the process ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import FrameType

from tracing.llm.threads import THREAD
from tracing.temporary_values import context_with

INTERRUPTED = 130
"""Exit code of a command that was interrupted."""

_AGAIN_S = 0.02
_STDERR = 2
_SHOW_CURSOR = b"\x1b[?25h"

_shown_by: ContextVar[Callable[[str], None] | None] = ContextVar("memtune-interrupts-shown-by", default=None)


def _not_begun(number: int, frame: FrameType | None) -> None:
    """There is nothing to finish and nothing to say."""
    os._exit(INTERRUPTED)


def own_process() -> None:
    """Handle both signals for a process that runs one command: until `interruptible` begins, they end it at once."""
    for number in _heeded_signals():
        signal.signal(number, _not_begun)


def _heeded_signals() -> list[signal.Signals]:
    """The signals that are not ignored: what a shell started in the background keeps ignoring Ctrl-C."""
    return [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def interruptible() -> Iterator[None]:
    """Turn both signals into a `KeyboardInterrupt`, and say so where calls under way are finished first.

    The next signal then ends the process as a kill would, which loses no more than those calls. In a process of the
    command's own, signals change nothing once it is done, and kill what is left of it once it was interrupted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    finishing = interrupted = False
    unraisable = sys.unraisablehook

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal finishing, interrupted
        interrupted = True
        if finishing:
            _tell("stopped; finished calls are kept, and a run goes on with: memtune run --resume RUN")
            os._exit(INTERRUPTED)
        finishing = any(thread.name == THREAD for thread in threading.enumerate())
        if finishing:
            (_shown_by.get() or _tell)("finishing the calls under way; press Ctrl-C again to stop now")
        raise KeyboardInterrupt

    def ignored(args: sys.UnraisableHookArgs) -> None:
        """Interrupt again: Python cannot raise out of a finalizer or a callback of the garbage collector.

        By a signal of its own: one that comes together with the next Ctrl-C would be one with it.
        """
        if args.exc_type is KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            unraisable(args)

    before = {number: signal.signal(number, interrupt) for number in _heeded_signals()}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = ignored
    try:
        yield
    finally:
        sys.unraisablehook = unraisable
        signal.setitimer(signal.ITIMER_REAL, 0)
        # Python keeps what is ignored ignored until the very end, and no handler of ours.
        after = signal.SIG_DFL if interrupted else signal.SIG_IGN
        for number, handler in before.items():
            signal.signal(number, after if handler is _not_begun else handler)


def interrupts_shown_by(show: Callable[[str], None]) -> AbstractContextManager[None]:
    """Let `show` say that calls are being finished: what draws the terminal again and again would overwrite a line.

    It is called in the handler of a signal, so it may do no more than note the text.
    """
    return context_with(_shown_by, show)


def _tell(message: str) -> None:
    """Write a line past Python's buffers, which the interrupted code may be writing to, and past a progress bar."""
    line = f"memtune: {message}\n".encode()
    os.write(_STDERR, _SHOW_CURSOR + b"\n" + line if os.isatty(_STDERR) else line)
