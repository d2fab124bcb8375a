"""Servers that are kept for their next use, since one takes seconds to start."""

from __future__ import annotations

import atexit
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar


class Closeable(Protocol):
    """What can be kept."""

    @property
    def alive(self) -> bool:
        """Whether it can be used again."""
        ...

    def close(self) -> None:
        """End it."""
        ...


T = TypeVar("T", bound=Closeable)


class ServerPool(Generic[T]):
    """The last few servers of a kind, by what they are good for; all end with this process."""

    def __init__(self, most: int) -> None:
        """`most` is how many are kept."""
        self._most, self._guard = most, threading.Lock()
        self._kept: OrderedDict[str, T] = OrderedDict()
        atexit.register(self.close)

    @contextmanager
    def borrowed(self, key: str, make: Callable[[], T]) -> Iterator[T]:
        """One for this key, for the block alone. After an error it is ended."""
        with self._guard:
            server = self._kept.pop(key, None)
        if server is not None and not server.alive:
            server.close()
            server = None
        used = make() if server is None else server
        try:
            yield used
        except BaseException:
            used.close()
            raise
        with self._guard:
            ended = [self._kept.pop(key)] if key in self._kept else []
            self._kept[key] = used
            while len(self._kept) > self._most:
                ended.append(self._kept.popitem(last=False)[1])
        for stale in ended:
            stale.close()

    def close(self) -> None:
        """End all that are kept."""
        with self._guard:
            ended = list(self._kept.values())
            self._kept.clear()
        for server in ended:
            server.close()
