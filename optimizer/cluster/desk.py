"""The run's side of the mailbox: calls of workers are made here, each in the context of the step that it belongs to."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from tracing.errors import MemtuneError, in_one_line
from tracing.llm.access import ModelAccess
from tracing.llm.forwarding.answering import answered, unmade
from tracing.llm.workers import GivenUp

Calls = list[tuple[int, str, str]]
"""Calls that workers ask for: a number, the name of the attempt at a step, and the request."""


class Step:
    """The calls of one step. An attempt after the first gets the answers of those before it, without a second call.

    So a step that several workers began is counted as if one had done it.

    Args:
        access: makes the calls, in the context of the caller.
    """

    def __init__(self, access: ModelAccess) -> None:
        self._access, self._context = access, copy_context()
        self._lock = threading.Lock()
        self._asked: dict[str, deque[Future[str]]] = defaultdict(deque)
        self._before: dict[str, deque[Future[str]]] = defaultdict(deque)

    def begin(self) -> None:
        """Another attempt begins."""
        with self._lock:
            for request, answers in self._asked.items():
                self._before[request].extendleft(reversed(answers))
            self._asked.clear()

    def answer(self, request: str) -> str:
        """The answer to a request."""
        with self._lock:
            known = self._before[request]
            answer = known.popleft() if known else None
            mine: Future[str] = answer or Future()
            self._asked[request].append(mine)
        if answer is None:
            try:
                mine.set_result(self._context.copy().run(answered, self._access, request))
            except BaseException as error:
                # A worker that is not answered would wait for ever.
                mine.set_result(unmade(MemtuneError(f"the call failed: {in_one_line(error)}")))
        return mine.result()


class Desk:
    """Takes calls and answers them, in threads of its own.

    Args:
        take: waits a moment for calls.
        send: sends the answer to the call of this number.
        threads: how many calls are made at a time at most.
    """

    def __init__(self, take: Callable[[], Calls], send: Callable[[int, str], Any], threads: int) -> None:
        self._take, self._send = take, send
        self._attempts: dict[str, Step] = {}
        self._closed = False
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="memtune-desk")
        self._thread = threading.Thread(target=self._serve, name="memtune-desk", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def attempt(self, step: Step) -> Iterator[str]:
        """Answer the calls of an attempt at a step; gives the attempt's name."""
        name = uuid.uuid4().hex
        step.begin()
        self._attempts[name] = step
        try:
            yield name
        finally:
            del self._attempts[name]

    def close(self) -> None:
        """Take no further calls; those under way end first."""
        self._closed = True
        self._thread.join()
        self._pool.shutdown(cancel_futures=True)

    def _serve(self) -> None:
        while not self._closed:
            for number, name, request in self._take():
                self._pool.submit(self._answer, number, name, request)

    def _answer(self, number: int, name: str, request: str) -> None:
        step = self._attempts.get(name)
        # The attempt was given up, or its worker was taken for dead.
        self._send(number, unmade(GivenUp()) if step is None else step.answer(request))
