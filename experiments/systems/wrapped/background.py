"""What a program does beside its build or answer: threads, pools and queues, which belong to what began them.

A queue carries to its worker for whom an item is, also to a worker that began before, and a build ends when what it has
begun has ended, as a program that goes on running would have it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import queue
import re
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextvars import Context, ContextVar, Token, copy_context
from typing import Any

from experiments.systems.wrapped.requests import REPLACED, RUNNING
from tracing.instrument.patches import BEGINNING

_QUIET_S = {True: 5.0, False: 30.0}
"""Whether only daemons go on → how long a build waits while nothing happens."""
_TURN_S = 1.0
"""How long something begun waits for what was begun before it while nothing happens: they may wait for each other."""
_POLL_S = 0.005
_MANAGING = re.compile(r"(?:multiprocessing|concurrent|joblib|loky|tracing)\b")
"""Modules whose threads manage pools, and have no end of their own."""
_PUT, _KEPT = "_memtune_put", "_memtune_kept"
_LASTING = set[str]()
"""Names of functions that went on for so long that nobody waits for them again."""
_WAITING = set[int]()
"""Threads in `get` of a queue."""
_WORKING: dict[int, tuple[Background, Any, list[Token[Any]]]] = {}
"""Thread that has taken an item → for whom, from which queue, and how its context was before."""
_WITHIN: ContextVar[list[_Work] | None] = ContextVar("memtune_begun_within", default=None)
"""What the thread or the work of a pool that runs here has begun itself."""


class _Work:
    """What a thread or a pool does: after what was begun before it by the same, so that equal builds ask alike."""

    def __init__(self, name: str, earlier: _Work | None) -> None:
        self.name, self.earlier, self.is_daemon = name, earlier, False
        self.done = threading.Event()
        self.thread: int | None = None

    def is_idle(self) -> bool:
        """Whether it waits for somebody who gives it something to do."""
        earlier = self.earlier
        waits = earlier is not None and not earlier.done.is_set() and earlier.is_idle()
        return waits or self.thread in _WAITING or self.name in _LASTING


class Background:
    """What one build or answer has begun. `wait` returns when it has ended."""

    def __init__(self) -> None:
        # Threads append and remove at once, and counts could lose one.
        self._asking: list[None] = []
        self._works: list[_Work] = []
        self._first: list[_Work] = []
        self._queued: list[Any] = []

    def begun(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What a thread or a pool is to run for it."""
        target = getattr(getattr(function, "__self__", None), "_target", None) or function
        module = getattr(target, "__module__", None) or ""
        if _MANAGING.match(module):
            return function
        siblings = _WITHIN.get()
        siblings = self._first if siblings is None else siblings
        earlier = siblings[-1] if siblings else None
        work = _Work(f"{module}.{getattr(target, '__qualname__', target)}", earlier)
        siblings.append(work)
        self._works.append(work)

        @functools.wraps(function)
        def worked(*args: Any, **kwargs: Any) -> Any:
            if earlier is not None:
                self._await(earlier)
                work.earlier = None
            token = _WITHIN.set([])
            work.thread, work.is_daemon = threading.get_ident(), threading.current_thread().daemon
            try:
                return function(*args, **kwargs)
            finally:
                _finish()
                work.thread = None
                work.done.set()
                _WITHIN.reset(token)

        return worked

    def begun_task(self, task: asyncio.Task[Any], name: str) -> None:
        """A task that it has begun."""
        work = _Work(name, None)
        work.is_daemon = True
        task.add_done_callback(lambda _: work.done.set())
        self._works.append(work)

    def _await(self, earlier: _Work) -> None:
        quiet = time.monotonic()
        while not earlier.done.wait(_POLL_S) and not earlier.is_idle():
            if self._asking:
                quiet = time.monotonic()
            elif time.monotonic() - quiet > _TURN_S:
                return

    @contextlib.contextmanager
    def in_request(self) -> Iterator[None]:
        """Around a request."""
        self._asking.append(None)
        try:
            yield
        finally:
            self._asking.pop()

    def put(self, held: Any) -> None:
        """An item was put into a queue."""
        if not hasattr(held, _KEPT):
            self._queued.append(held)

    def is_left_to(self, thread: threading.Thread) -> bool:
        """Whether a thread that takes an item works for itself: it began before, or was begun here."""
        return RUNNING.get() is None or any(work.thread == thread.ident for work in self._works)

    def done(self, held: Any) -> None:
        """What was to be done with an item of a queue is done."""
        with contextlib.suppress(ValueError):
            self._queued.remove(held)

    def wait(self) -> None:
        """Until all has ended: not for what waits for an item, nor longer than nothing happens."""
        quiet, before = time.monotonic(), None
        while True:
            works = [work for work in self._works if not work.done.is_set() and not work.is_idle()]
            working = [ident for ident, (owner, *_) in [*_WORKING.items()] if owner is self and _is_alive(ident)]
            if not (works or working or self._asking or self._queued):
                return
            now = None if working or self._asking else (len(works), len(self._queued))
            if now is None or now != before:
                quiet, before = time.monotonic(), now
            if time.monotonic() - quiet > _QUIET_S[all(work.is_daemon for work in works)]:
                _LASTING.update(work.name for work in works)
                for held in self._queued:
                    setattr(held, _KEPT, True)
                return
            time.sleep(_POLL_S)


def _is_alive(ident: int) -> bool:
    return any(thread.ident == ident for thread in threading.enumerate())


def follow_background() -> None:
    """Let the threads and queues of programs belong to the builds and answers that begin them."""
    if _begun not in BEGINNING:
        BEGINNING.append(_begun)
    for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue):
        REPLACED.replace(kind, "_put", _putting)
        REPLACED.replace(kind, "_get", _taking)
    REPLACED.replace(queue.Queue, "get", _getting)
    REPLACED.replace(queue.Queue, "task_done", _finishing)


async def with_tasks(work: Awaitable[Any]) -> Any:
    """What a coroutine of a program returns; tasks that it begins are noted, since `wait` waits for those too."""
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is None:
        loop.set_task_factory(_task)
    result = await work
    return await result if asyncio.isfuture(result) else result


def _task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
    background = _here()
    if background is not None:
        background.begun_task(task, getattr(coroutine, "__qualname__", ""))
    return task


def _begun(function: Callable[..., Any]) -> Callable[..., Any]:
    background = _here()
    return function if background is None else background.begun(function)


def _here() -> Background | None:
    """What the build or answer that runs here has begun; None where none does, or in a process that passes on."""
    background: Background | None = getattr(RUNNING.get(), "background", None)
    return background


def _putting(original: Any) -> Any:
    def put(held: Any, item: Any) -> None:
        background = _here()
        if background is not None:
            background.put(held)
            vars(held).setdefault(_PUT, deque()).append((item, background, copy_context()))
        original(held, item)

    return put


def _taking(original: Any) -> Any:
    def take(held: Any) -> Any:
        item = original(held)
        _finish()
        owners = vars(held).get(_PUT)
        owner = next((owner for owner in owners or () if owner[0] is item), None)
        if owner is not None:
            owners.remove(owner)
            _, background, context = owner
            if background.is_left_to(threading.current_thread()):
                _WORKING[threading.get_ident()] = (background, held, [*_entered(context)])
            else:
                background.done(held)
        return item

    return take


def _getting(original: Any) -> Any:
    def get(held: Any, *args: Any, **kwargs: Any) -> Any:
        _finish()
        ident = threading.get_ident()
        _WAITING.add(ident)
        try:
            return original(held, *args, **kwargs)
        finally:
            _WAITING.discard(ident)

    return get


def _finishing(original: Any) -> Any:
    def task_done(held: Any) -> None:
        _finish()
        original(held)

    return task_done


def _entered(context: Context) -> Iterator[Token[Any]]:
    """The variables of a context, set here."""
    for variable, value in context.items():
        yield variable.set(value)


def _finish() -> None:
    """This thread has done what there was to do with its last item."""
    background, held, tokens = _WORKING.pop(threading.get_ident(), (None, None, []))
    if background is None:
        return
    for token in reversed(tokens):
        with contextlib.suppress(ValueError):  # taken in another context
            token.var.reset(token)
    background.done(held)
