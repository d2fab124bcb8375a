"""Where events are kept: a store is opened for one tenant and reads and writes nothing of any other.

A tenant is an entity and a process. A store sees the events that its own process recorded, and those that other
processes of the entity shared. It enforces this below its SQL: no statement that it is given can name another tenant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tracing.errors import MemtuneError
from tracing.trace_memory.events import checked_name

Row = tuple[Any, ...]


class StoreError(MemtuneError):
    """A trace memory's store cannot be reached, read or written."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose events a store holds: those of an entity (a user or project), as one of its processes sees them."""

    entity: str
    process: str

    def __post_init__(self) -> None:
        checked_name("entity", self.entity)
        checked_name("process", self.process, empty=True)


class Storage(Protocol):
    """A store of one tenant's events and their vectors; its methods may be called from any thread.

    SQL has `?` for each parameter and reads the relations `events` and `vectors`.
    """

    like: str
    """The operator of patterns that ignores case."""

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query. Raises StoreError."""
        ...

    def stream(self, query: str, values: Sequence[Any] = (), size: int = 4096) -> Iterator[list[Row]]:
        """The rows of a query, at most `size` at a time. Raises StoreError."""
        ...

    def add_events(self, rows: Sequence[Row]) -> None:
        """Add events in one transaction: (id, project, session, shared, type, key, value, metadata, time).

        Those whose id the process has used already are left out. Returns once all are durable. Raises StoreError.
        """
        ...

    def add_vectors(self, rows: Sequence[Row]) -> None:
        """Set the vectors of events in one transaction: (number, model, vector). Raises StoreError."""
        ...

    def replace_content(self, number: int, kind: str, value: str, metadata: str) -> None:
        """Replace type, value and metadata of an event of this process. Raises StoreError."""
        ...

    def faults(self) -> list[str]:
        """What is wrong with the store itself, in plain words."""
        ...

    def repair(self) -> None:
        """Mend what `faults` finds, as far as can be. Raises StoreError."""
        ...

    def close(self) -> None:
        """End the use of the store."""
        ...
