"""Writes in the background: the agent hands rows over and goes on, and a barrier waits until they are durable."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tracing.errors import MemtuneError
from tracing.trace_memory.stores.storage import Row, StoreError

MOST_WAITING = 10_000
"""Rows that may wait; more make `put` wait, so that a slow store does not fill the memory."""

_MOST_AT_ONCE = 2_000


class Writer:
    """A thread that saves rows in the order in which they came, as many at once as are waiting.

    A row that could not be saved stays first in line. `flush` reports that, and each `flush` tries again.
    """

    def __init__(self, save: Callable[[Sequence[Row]], None]) -> None:
        self._save = save
        self._changed = threading.Condition()
        self._waiting: list[Row] = []
        self._taken_in = self._saved = 0
        self._error: MemtuneError | None = None
        self._closing = False
        self._thread: threading.Thread | None = None

    def put(self, row: Row) -> None:
        """Hand a row over; it is durable once `flush` has returned.

        Raises:
            StoreError: so many rows wait, because the store cannot be written, that no more are taken.
        """
        with self._changed:
            if self._closing:
                raise StoreError("the trace memory is closed; open it again")
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="memtune trace memory", daemon=True)
                self._thread.start()
            while len(self._waiting) >= MOST_WAITING:
                if self._error is not None:
                    raise self._error
                self._changed.wait()
            self._waiting.append(row)
            self._taken_in += 1
            if len(self._waiting) == 1:
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until every row that was handed over before is durable.

        Raises:
            StoreError: they could not be saved. They are kept, and the next `flush` tries again.
        """
        with self._changed:
            until = self._taken_in
            if self._saved >= until:
                return
            self._error = None
            self._changed.notify_all()
            while self._saved < until:
                if self._error is not None:
                    raise self._error
                self._changed.wait()

    def close(self) -> None:
        """Flush and end the thread. Raises StoreError: rows could not be saved, and are lost with this process."""
        try:
            self.flush()
        except StoreError as error:
            raise StoreError(f"{error} ({self._taken_in - self._saved} events were not stored)") from error
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            if self._thread is not None:
                self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._closing and (not self._waiting or self._error is not None):
                    self._changed.wait()
                if self._closing:
                    return
                rows = self._waiting[:_MOST_AT_ONCE]
            error: MemtuneError | None = None
            try:
                self._save(rows)
            except MemtuneError as told:
                error = told
            except Exception as failed:
                error = StoreError(f"the trace memory cannot be written ({type(failed).__name__}: {failed})")
            with self._changed:
                if error is None:
                    del self._waiting[: len(rows)]
                    self._saved += len(rows)
                self._error = error
                self._changed.notify_all()
