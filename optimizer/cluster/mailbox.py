"""The mailbox between workers and the run: calls go in, and the process with the run takes them out and answers."""

from __future__ import annotations

import asyncio
from itertools import count

WAIT_S = 0.5
"""How long the run waits for calls before it asks again."""


class Mailbox:
    """An actor of the cluster, on the machine with the run. All texts are JSON."""

    def __init__(self) -> None:
        self._numbers = count()
        self._calls: list[tuple[int, str, str]] = []
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

    async def take(self) -> list[tuple[int, str, str]]:
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
