"""Threads that keep an endpoint busy: independent pieces of work at the same time, with results in their order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar, copy_context
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class GivenUp(BaseException):
    """Ends work whose result nobody waits for any more. Not an `Exception`, so that no system swallows it."""


class Workers:
    """At most `count` threads for all work of one access, however deeply it is nested.

    Work may share its own parts out: it takes part in them itself, and is helped by whatever threads are free then.
    So nobody ever waits for a thread, and work that was begun is finished first.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = threading.Semaphore(count)

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """`work(item)` for each item, in the context of the caller; the results in the order of the items.

        Each comes as soon as it and those before it are there. The first error in that order is raised; what has not
        begun by then is left out, and what is under way has ended before the error leaves, or the caller does.
        """
        if not items:
            return
        outer = _batch.get()
        batch = _Batch(work, items, outer, self._free)
        try:
            if outer is None:
                # The caller tells others how far the work is, so it waits while threads do it.
                self._free.acquire()
                batch.start_thread()
            else:
                batch.work_here()
            yield from batch.results()
        finally:
            batch.end()


def end_if_given_up() -> None:
    """End here if nobody waits for the result any more.

    Raises:
        GivenUp: that is so.
    """
    batch = _batch.get()
    if batch is not None and batch.given_up:
        raise GivenUp


class _Batch(Generic[T, R]):
    """The work of one `map`."""

    def __init__(
        self, work: Callable[[T], R], items: Sequence[T], outer: _Batch[Any, Any] | None, free: threading.Semaphore
    ) -> None:
        self._work, self._items, self._outer, self._free = work, items, outer, free
        self._next = 0
        self._left = False
        self._done: dict[int, R] = {}
        self._errors: dict[int, BaseException] = {}
        self._threads = 0
        self._changed = threading.Condition()

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for the results any more."""
        return self._left or (self._outer is not None and self._outer.given_up)

    def work_here(self) -> None:
        """Do what is to do, helped by the threads that are free."""
        token = _batch.set(self)
        try:
            while (at := self._take()) is not None:
                self._recruit()
                try:
                    done = self._work(self._items[at])
                except BaseException as error:
                    with self._changed:
                        self._errors[at] = error
                        self._changed.notify_all()
                else:
                    with self._changed:
                        self._done[at] = done
                        self._changed.notify_all()
        finally:
            _batch.reset(token)

    def start_thread(self) -> None:
        """Let one more thread work, for which a place was acquired."""
        with self._changed:
            self._threads += 1
        context = copy_context()
        threading.Thread(target=context.run, args=(self._help,), name="memtune-worker", daemon=True).start()

    def results(self) -> Iterator[R]:
        """The results in order, as they come.

        Raises:
            Whatever the work raised, the first in order.
        """
        for at in range(len(self._items)):
            with self._changed:
                while self._threads and at not in self._done and at not in self._errors:
                    self._changed.wait()
                if at in self._errors:
                    raise self._errors[at]
                if at not in self._done:
                    raise GivenUp
                done = self._done.pop(at)
            yield done

    def end(self) -> None:
        """Begin nothing further, and return when no thread works any more."""
        with self._changed:
            self._left = True
            while self._threads:
                self._changed.wait()

    def _help(self) -> None:
        try:
            self.work_here()
        finally:
            self._free.release()
            with self._changed:
                self._threads -= 1
                self._changed.notify_all()

    def _take(self) -> int | None:
        with self._changed:
            if self.given_up or self._errors or self._next == len(self._items):
                return None
            self._next += 1
            return self._next - 1

    def _recruit(self) -> None:
        """Take one more thread on, if there is work left and a place free."""
        if self._next < len(self._items) and self._free.acquire(blocking=False):
            self.start_thread()


_batch: ContextVar[_Batch[Any, Any] | None] = ContextVar("memtune_batch", default=None)
"""The batch whose work runs in this context."""
