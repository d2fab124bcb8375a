"""The mailbox between workers and the run: calls go in, and the run's desk takes them out, makes them and answers.

Each call is made in the context of the step that it belongs to.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

from tracing.llm.forwarding.forwarded_calls import RepeatableStep, unmade
from tracing.llm.threads import GivenUp

Calls = list[tuple[int, str, str]]
"""Calls that workers ask for: a number, the name of the attempt at a step, and the request."""

WAIT_S = 0.5
"""How long the run waits for calls before it asks again."""


class Mailbox:
    """An actor of the cluster, on the machine with the run. All texts are JSON."""

    def __init__(self) -> None:
        self._numbers = count()
        self._calls: Calls = []
        self._arrived = asyncio.Event()
        self._awaited: dict[int, asyncio.Future[str]] = {}

    async def ask(self, step: str, request: str) -> str:
        """For a worker: the answer to a request of a step."""
        number = next(self._numbers)
        self._awaited[number] = asyncio.get_running_loop().create_future()
        self._calls.append((number, step, request))
        self._arrived.set()
        try:
            return await self._awaited[number]
        finally:
            del self._awaited[number]

    async def take(self) -> Calls:
        """For the run: calls that have arrived, each with its number, step and request; none after `WAIT_S`."""
        try:
            await asyncio.wait_for(self._arrived.wait(), WAIT_S)
        except TimeoutError:
            return []
        calls, self._calls = self._calls, []
        self._arrived.clear()
        return calls

    async def answer(self, number: int, answer: str) -> None:
        """For the run: answer a call. The worker that asked may be gone."""
        waiting = self._awaited.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)


class Desk:
    """Takes calls and answers them, in threads of its own.

    Args:
        take: waits a moment for calls.
        send: sends the answer to the call of this number.
        threads: how many calls are made at a time at most.
    """

    def __init__(self, take: Callable[[], Calls], send: Callable[[int, str], Any], threads: int) -> None:
        self._take, self._send = take, send
        self._attempts: dict[str, RepeatableStep] = {}
        self._closed = False
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="memtune-desk")
        self._thread = threading.Thread(target=self._serve, name="memtune-desk", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def attempt(self, step: RepeatableStep) -> Iterator[str]:
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
