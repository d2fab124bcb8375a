"""Threads that keep an endpoint busy: independent work runs concurrently, with results in order."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context, ContextVar, copy_context
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

THREAD = "memtune-thread"
"""Name of each thread, and of others while a call is under way there: whoever interrupts is told of these."""

_IDLE_S = 5.0
"""How long a thread waits for more work before it ends."""


class GivenUp(BaseException):
    """Ends work whose result is no longer wanted. Not an `Exception`, so that no system swallows it."""


class Threads:
    """At most `count` threads for all work of one access, however deeply it is nested.

    Work may itself call `map`: its thread works on the parts too, helped by any free threads. So no work waits for a
    thread, and work that has begun is finished first.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._changed = threading.Condition()
        self._open: list[_Batch[Any, Any]] = []
        self._threads = self._idle = 0

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """`work(item)` for each item, in the context of the caller; the results in the order of the items.

        Each result is yielded as soon as it and those before it are done. The first error in that order is raised.
        Work that has not begun by then is skipped; work under way ends before the error is raised or the caller leaves.
        """
        outer = _batch.get()
        batch = _Batch(work, items, outer)
        try:
            self._call_threads(batch, len(items) if outer is None else len(items) - 1)
            if outer is not None:
                # A caller from outside only waits, and may report progress; one of these threads goes on working.
                while (at := batch.take()) is not None:
                    batch.do(at)
            yield from batch.results()
        finally:
            self._close(batch)
            batch.end()

    def _call_threads(self, batch: _Batch[Any, Any], count: int) -> None:
        with self._changed:
            self._open.append(batch)
            self._changed.notify(count)
            new = max(0, min(count - self._idle, self.count - self._threads))
            self._threads += new
        try:
            while new:
                # Each piece of work brings its own context.
                threading.Thread(target=Context().run, args=(self._work,), name=THREAD, daemon=True).start()
                new -= 1
        except RuntimeError:
            # The system has no more threads. Those that run are enough, and more are started for the next work.
            with self._changed:
                self._threads -= new
                if not self._threads:
                    raise

    def _close(self, batch: _Batch[Any, Any]) -> None:
        """Offer nothing of a batch any more."""
        if batch in self._open:
            with self._changed, contextlib.suppress(ValueError):
                self._open.remove(batch)

    def _work(self) -> None:
        """What a thread does: the oldest work first."""
        while (work := self._next()) is not None:
            batch, at = work
            batch.do(at)

    def _next(self) -> tuple[_Batch[Any, Any], int] | None:
        while True:
            # Work is found without the lock. A thread that is given a lock waits for the interpreter while it holds it;
            # with a hundred threads it took a fifth of a second until the last one had found its first work.
            while (batch := next(iter(self._open), None)) is not None:
                at = batch.take()
                if at is not None:
                    return batch, at
                self._close(batch)
            with self._changed:
                if self._open:
                    continue
                self._idle += 1
                called = self._changed.wait(_IDLE_S)
                self._idle -= 1
                if not called and not self._open:
                    self._threads -= 1
                    return None


def end_if_given_up() -> None:
    """Raise `GivenUp` if the result of this work is no longer wanted."""
    batch = _batch.get()
    if batch is not None and batch.given_up:
        raise GivenUp


class _Batch(Generic[T, R]):
    """The work of one `map`."""

    def __init__(self, work: Callable[[T], R], items: Sequence[T], outer: _Batch[Any, Any] | None) -> None:
        self._work, self._items, self._outer = work, items, outer
        self._context = copy_context()
        self._context.run(_batch.set, self)
        self._waiting = deque(range(len(items)))
        self._ended = self._awaited = 0
        self._left = False
        self._done: dict[int, R] = {}
        self._errors: dict[int, BaseException] = {}
        self._changed = threading.Condition()

    @property
    def given_up(self) -> bool:
        """Whether the results are no longer wanted."""
        return self._left or (self._outer is not None and self._outer.given_up)

    def take(self) -> int | None:
        """The number of the next item, which the caller must then `do`; None if nothing is left to begin."""
        return None if self.given_up or self._errors else self._pop()

    def _pop(self) -> int | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def do(self, at: int) -> None:
        """Do the work on one item, and keep its result or error."""
        error: BaseException | None = None
        try:
            result = self._context.copy().run(self._work, self._items[at])
        except BaseException as raised:
            error = raised
        with self._changed:
            self._ended += 1
            if error is None:
                self._done[at] = result
            else:
                self._errors[at] = error
            # Waking the caller for a later result would cost two changes of threads for nothing.
            if at == self._awaited or self._errors or self.given_up:
                self._changed.notify_all()

    def results(self) -> Iterator[R]:
        """The results in order, as they arrive, or the first error in that order."""
        for at in range(len(self._items)):
            with self._changed:
                self._awaited = at
                while at not in self._done and at not in self._errors and not self._abandoned(at):
                    self._changed.wait()
                if at in self._errors:
                    raise self._errors[at]
                if at not in self._done:
                    raise GivenUp
                result = self._done.pop(at)
            yield result

    def end(self) -> None:
        """Begin nothing further, and return once no thread works on it."""
        with self._changed:
            self._left = True
            skipped = 0
            while self._pop() is not None:
                skipped += 1
            while self._ended + skipped < len(self._items):
                self._changed.wait()

    def _abandoned(self, at: int) -> bool:
        """Whether an item will not be begun."""
        try:
            return self._waiting[0] <= at and (self.given_up or bool(self._errors))
        except IndexError:
            return False


_batch: ContextVar[_Batch[Any, Any] | None] = ContextVar("memtune_batch", default=None)
"""The batch whose work runs in this context."""
