"""Threads that record in the context that started them, without `bind`."""

from __future__ import annotations

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tracing.instrument.patches import Instrumentation
from tracing.recording.scope import bind, current, paused


def threads() -> Instrumentation:
    """Let every `threading.Thread`, and all work of a `ThreadPoolExecutor`, record in the context that started it.

    It applies only while something is recorded, and to other context variables too.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with instrument.threads(), trace() as recorder, ThreadPoolExecutor() as pool:
        ...     home = pool.submit(variable, "Oslo", name="home").result()
        >>> home.id in recorder.graph.variables
        True
    """
    instrumentation = Instrumentation()

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
            with paused():  # a worker that is started here will do other people's work too
                return original(pool, function, *args, **kwargs)

        return submit

    instrumentation.replace(threading.Thread, "start", starting)
    instrumentation.replace(ThreadPoolExecutor, "submit", submitting)
    return instrumentation
