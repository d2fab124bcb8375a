"""Replies of models, each paid once: found in the cache, or made, written down in the ledger and cached.

A request passes four links: cache → ledger → budget → endpoint. Each knows only the next one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from tracing.llm.booking import Booking, Call, Reply
from tracing.llm.budget import Spending
from tracing.llm.cache import ResponseCache
from tracing.llm.ledger import Ledger
from tracing.llm.settings import ModelSettings
from tracing.llm.single_flight import SingleFlight
from tracing.llm.workers import end_if_given_up

R = TypeVar("R")


class PaidCalls:
    """The link behind the cache: whatever is paid is written down before it is cached.

    Args:
        booking: the next link.
        ledger: where paid calls are written down, and those of the run's earlier life are found; None for none.
    """

    def __init__(self, booking: Booking, ledger: Ledger | None) -> None:
        self.ledger, self._booking = ledger, booking

    def require_room(self) -> None:
        """Make sure that another reply can be kept, and that somebody waits for it.

        Raises:
            RunError: the disk has no room for it.
        """
        end_if_given_up()
        if self.ledger is not None:
            self.ledger.require_room()

    def use_spare_room(self) -> bool:
        """Give up the room that is held back for what is paid already; False where there is none."""
        if self.ledger is None:
            return False
        self.ledger.use_spare_room()
        return True

    def make(self, call: Call[Reply]) -> Mapping[str, bytes]:
        """Make a call, write it down, and return what the cache is to keep of the reply.

        Raises:
            BudgetExceededError, CallFailedError: as the next links.
            RunError: it cannot be written down.
        """
        reply = self._booking.make(call)
        entries = call.entries(reply)
        if self.ledger is not None:
            seconds = self._booking.budget.seconds
            self.ledger.paid(list(entries), reply.prompt_tokens, reply.completion_tokens, seconds)
        return entries

    def claim(self, settings: ModelSettings, keys: Sequence[str], most: Callable[[int], Spending]) -> bool:
        """Book cached replies that the run paid in its earlier life as if it paid them now; whether there are any.

        Args:
            keys: of the replies.
            most: from the prompt tokens of a call to what it may have cost at most.

        Raises:
            BudgetExceededError: a budget does not allow it any more.
        """
        claimed = [] if self.ledger is None else self.ledger.claim(keys)
        for paid in claimed:
            self._booking.again(settings, most(paid.prompt_tokens), paid)
        return bool(claimed)

    def reuse(self, model: str, prompt_tokens: int, completion_tokens: int) -> None:
        """Book a reply that another run paid."""
        self._booking.reuse(model, prompt_tokens, completion_tokens)


class Replies:
    """The first link: what the cache holds is not asked for again.

    Args:
        cache: None for none.
        paid: the next link.
        flights: shared by all who use the cache.
    """

    def __init__(self, cache: ResponseCache | None, paid: PaidCalls, flights: SingleFlight) -> None:
        self.cache, self.paid, self._flights = cache, paid, flights

    @contextlib.contextmanager
    def alone(self, *keys: str) -> Iterator[None]:
        """Let one of several equal requests at a time through, so that the others find its reply in the cache."""
        with self._flights.alone(*keys):
            yield

    def stored(self, keys: Sequence[str], read: Callable[[bytes], R | None]) -> dict[str, R]:
        """What the cache holds of `keys`; an entry of which `read` makes nothing is no reply, and dropped."""
        if self.cache is None:
            return {}
        entries = self.cache.get_many(keys)
        sound = {key: value for key, entry in entries.items() if (value := read(entry)) is not None}
        if len(sound) < len(entries):
            self.cache.discard([key for key in entries if key not in sound])
        return sound

    def make(self, call: Call[Reply]) -> Mapping[str, bytes]:
        """Make a call and cache its replies.

        Raises:
            BudgetExceededError, CallFailedError, RunError: as the next links.
        """
        entries = self.paid.make(call)
        if self.cache is not None and not self.cache.put_many(entries) and self.paid.use_spare_room():
            self.cache.put_many(entries)
        self.paid.require_room()
        return entries
