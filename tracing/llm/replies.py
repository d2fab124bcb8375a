"""Replies that the cache has, or that a call makes.

A request passes four links: cache → ledger → budget → endpoint. `Replies` is the first, `booking` has the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tracing.llm.booking import Booking, Call, Reply
from tracing.llm.cache import ResponseCache
from tracing.llm.http.bodies import ChatCompletion
from tracing.llm.single_flight import SingleFlight

R = TypeVar("R")


class Replies:
    """Cached replies are not requested again.

    Args:
        cache: None for none.
        booking: the next link.
        flights: shared by all users of the cache.
    """

    def __init__(self, cache: ResponseCache | None, booking: Booking, flights: SingleFlight) -> None:
        self.booking, self.alone = booking, flights.alone
        self._cache = cache
        self._own: set[str] = set()

    def stored(self, keys: Sequence[str], read: Callable[[bytes], R | None]) -> dict[str, R]:
        """The cached replies for `keys`; an entry for which `read` returns None is removed."""
        if self._cache is None:
            return {}
        entries = self._cache.get_many(keys)
        sound = {key: value for key, entry in entries.items() if (value := read(entry)) is not None}
        if len(sound) < len(entries):
            self._cache.discard([key for key in entries if key not in sound])
        return sound

    def own_or_usable(self, key: str, entry: bytes) -> ChatCompletion | None:
        """A chat reply; None if another run got it and it was refused, since the endpoint may have changed its mind."""
        completion = ChatCompletion.stored(entry)
        ledger = self.booking.ledger
        if completion is None or completion.unusable not in ("refused", "filtered") or key in self._own:
            return completion
        if ledger is None or not ledger.made(key):
            return None
        self._own.add(key)
        return completion

    def make(self, call: Call[Reply]) -> Mapping[str, bytes]:
        """Make a call and cache its replies. Raises as `Booking.make`."""
        entries, ledger = self.booking.make(call), self.booking.ledger
        self._own.update(entries)
        if self._cache is not None and not self._cache.put_many(entries) and ledger is not None:
            # They are paid.
            ledger.use_spare_room()
            self._cache.put_many(entries)
        self.booking.require_room()
        return entries
