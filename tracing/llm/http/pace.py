"""How many requests an endpoint gets at a time, and in a minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

_SPARED = 0.05
"""A smaller part of refused requests changes nothing: providers refuse some at any rate, and say when to come back."""


class Width:
    """How many requests may be under way at a time: fewer when many are refused, and slowly more again.

    It changes once for each round of them, by the part that was refused (as DCTCP does, RFC 8257). Of one event loop.

    Args:
        most: requests at a time.
    """

    def __init__(self, most: int) -> None:
        self._most, self._allowed = most, float(most)
        self._under_way = self._answered = self._refused = 0
        self._freed: asyncio.Condition | None = None

    @property
    def allowed(self) -> int:
        """Requests at a time, at present; at least 1."""
        return int(self._allowed)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until another request is allowed."""
        self._freed = self._freed or asyncio.Condition()
        async with self._freed:
            try:
                await self._freed.wait_for(lambda: self._under_way < self.allowed)
            except asyncio.CancelledError:
                # It may have been its turn.
                self._freed.notify()
                raise
            self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            async with self._freed:
                self._freed.notify(max(0, self.allowed - self._under_way))

    def note(self, *, refused: bool) -> None:
        """A request was answered, or refused for its rate."""
        self._answered += not refused
        self._refused += refused
        if (requests := self._answered + self._refused) < self._allowed:
            return
        part = self._refused / requests
        self._answered = self._refused = 0
        if part > _SPARED:
            self._allowed = max(1.0, self._allowed * (1 - part / 2))
        else:
            self._allowed = min(self._most, self._allowed + 1)


_MINUTE_S = 63.0
"""A little more than a minute, since requests take unequally long to arrive where they are counted."""


class Pace:
    """When the next request of one model may be sent: in its turn, and within so many requests and tokens a minute.

    Requests are spread evenly; what was not sent in a quiet minute is not made up for.

    Args:
        width: of the endpoint, which several models may share.
        requests_per_minute, tokens_per_minute: None for any number.
    """

    def __init__(self, width: Width, requests_per_minute: int | None, tokens_per_minute: int | None) -> None:
        self.width = width
        self._seconds_a_request = _MINUTE_S / requests_per_minute if requests_per_minute else 0.0
        self._seconds_a_token = _MINUTE_S / tokens_per_minute if tokens_per_minute else 0.0
        self._free_at = 0.0
        self._line = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[None]:
        """Wait until a request of about so many tokens, in and out, may be sent."""
        async with AsyncExitStack() as stack:
            # Only the first in line waits for the width: others would be sent together once it is free.
            async with self._line:
                await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))
                await stack.enter_async_context(self.width.turn())
                self._free_at = time.monotonic() + max(self._seconds_a_request, tokens * self._seconds_a_token)
            yield
