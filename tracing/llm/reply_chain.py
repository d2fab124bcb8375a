"""Replies of models, each paid once: found in the cache, or made, recorded in the ledger and cached.

A request passes four links: cache → ledger → budget → endpoint. Each knows only the next one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tracing.llm.accounting.budget import Spending
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.booking import Booking, Call, Reply
from tracing.llm.cache import ResponseCache
from tracing.llm.settings import ModelSettings
from tracing.llm.single_flight import SingleFlight
from tracing.llm.threads import end_if_given_up

R = TypeVar("R")


class PaidCalls:
    """The link behind the cache: every paid call is recorded before it is cached.

    Args:
        booking: the next link.
        ledger: records paid calls, and has those made before the run was resumed; None for none.
    """

    def __init__(self, booking: Booking, ledger: Ledger | None) -> None:
        self.ledger, self._booking = ledger, booking

    def require_room(self) -> None:
        """Check that another reply can be stored, and that its result is still wanted.

        Raises:
            RunError: the disk has no room for it.
        """
        end_if_given_up()
        if self.ledger is not None:
            self.ledger.require_room()

    def use_spare_room(self) -> bool:
        """Release the room reserved for paid replies; False if there is none."""
        if self.ledger is None:
            return False
        self.ledger.use_spare_room()
        return True

    def make(self, call: Call[Reply]) -> Mapping[str, bytes]:
        """Make a call, record it, and return its cache entries.

        Raises:
            BudgetExceededError, CallFailedError: as the next links.
            RunError: it cannot be recorded.
        """
        budget = self._booking.budget
        began = budget.seconds
        reply = self._booking.make(call)
        entries = call.entries(reply)
        if self.ledger is not None:
            took = budget.since(began)
            self.ledger.record_call(list(entries), reply.prompt_tokens, reply.completion_tokens, budget.seconds, took)
        return entries

    def claim(self, settings: ModelSettings, keys: Sequence[str], most: Callable[[int], Spending]) -> bool:
        """Book cached replies that the run paid for before it was resumed as if paid now; whether there are any.

        Args:
            keys: of the replies.
            most: maps a call's prompt tokens to the most that it may have cost.

        Raises:
            BudgetExceededError: a budget no longer allows it.
        """
        claimed = [] if self.ledger is None else self.ledger.claim(keys)
        for entry in claimed:
            self._booking.again(settings, most(entry.prompt_tokens), entry)
        return bool(claimed)

    def reuse(self, model: str, prompt_tokens: int, completion_tokens: int) -> None:
        """Book a reply that another run paid for."""
        self._booking.reuse(model, prompt_tokens, completion_tokens)

    def note_empty(self) -> None:
        """Count a reply without a text."""
        self._booking.note_empty()


class Replies:
    """The first link: cached replies are not requested again.

    Args:
        cache: None for none.
        calls: the next link.
        flights: shared by all users of the cache.
    """

    def __init__(self, cache: ResponseCache | None, calls: PaidCalls, flights: SingleFlight) -> None:
        self.cache, self.calls, self._flights = cache, calls, flights

    def alone(self, *keys: str) -> contextlib.AbstractContextManager[None]:
        """Let one of several equal requests at a time through, so that the others find its reply in the cache."""
        return self._flights.alone(*keys)

    def stored(self, keys: Sequence[str], read: Callable[[bytes], R | None]) -> dict[str, R]:
        """The cached replies for `keys`; an entry for which `read` returns None is removed."""
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
        entries = self.calls.make(call)
        if self.cache is not None and not self.cache.put_many(entries) and self.calls.use_spare_room():
            self.cache.put_many(entries)
        self.calls.require_room()
        return entries
