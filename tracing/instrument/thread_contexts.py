"""Threads that record where they were started, without `bind`."""

from __future__ import annotations

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tracing.instrument.patches import Instrumentation
from tracing.recording.scope import bind, current


def threads() -> Instrumentation:
    """Let every `threading.Thread`, and whatever is submitted to a `ThreadPoolExecutor`, record where it was started.

    Only while something is recorded; other context variables come along.
    """
    made = Instrumentation()

    def starting(original: Any) -> Any:
        @functools.wraps(original)
        def start(thread: threading.Thread) -> None:
            if current.get().recorder is not None:
                thread.run = bind(thread.run)  # type: ignore[method-assign]
            original(thread)

        return start

    def submitting(original: Any) -> Any:
        @functools.wraps(original)
        def submit(pool: ThreadPoolExecutor, function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if current.get().recorder is not None:
                function = bind(function)
            return original(pool, function, *args, **kwargs)

        return submit

    made.replace(threading.Thread, "start", starting)
    made.replace(ThreadPoolExecutor, "submit", submitting)
    return made
