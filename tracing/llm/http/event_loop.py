"""An event loop in its own thread, where a deadline covers everything that may take time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class ClosedLoopError(Exception):
    """The event loop runs nothing more."""


class EventLoop:
    """Runs coroutines for other threads; its thread starts with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._end: asyncio.Event | None = None
        self._closed = False

    def start(self, work: Callable[..., Coroutine[Any, Any, T]], *args: object) -> Future[T]:
        """Begin `work(*args)`; cancelling the future cancels the work.

        Raises:
            ClosedLoopError: the loop is closed.
        """
        # While the lock is held the loop cannot close, so that what is begun is run or cancelled, and never forgotten.
        with self._lock:
            if self._closed:
                raise ClosedLoopError
            return asyncio.run_coroutine_threadsafe(work(*args), self._loop or self._begin())

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        """Cancel what was begun, all at once: one after the other, the next in line would take the turn of the last."""

        def each() -> None:
            for future in futures:
                future.cancel()

        with self._lock:
            if self._loop is not None and not self._closed:
                self._loop.call_soon_threadsafe(each)

    def close(self) -> None:
        """Cancel what is under way and end the thread. Closing twice does no harm."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._loop is not None and self._thread is not None and self._end is not None:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def _begin(self) -> asyncio.AbstractEventLoop:
        begun = threading.Event()

        async def run() -> None:
            self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
            begun.set()
            await self._end.wait()

        # `asyncio.run` cancels what is left at the end.
        self._thread = threading.Thread(target=lambda: asyncio.run(run()), name="memtune-requests", daemon=True)
        self._thread.start()
        begun.wait()
        assert self._loop is not None  # noqa: S101 (it has begun)
        return self._loop
