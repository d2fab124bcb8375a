"""Where events are kept: a store is opened for one tenant and reads and writes nothing of any other.

A tenant is an entity and a process. A store sees the events that its own process recorded, and those that other
processes of the entity shared. It enforces this below its SQL: no statement that it is given can name another tenant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tracing.errors import DataError, MemtuneError
from tracing.files.depth import DEEPEST
from tracing.package_data import packaged_text
from tracing.recording.redaction import Redaction
from tracing.trace_memory.events import Event, as_json, check_type, checked_name, moment

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

    def stream(self, query: str, values: Sequence[Any] = (), size: int = 4096) -> Iterator[list[Row]]:
        """The rows of a query, at most `size` at a time. Raises StoreError."""

    def add_events(self, rows: Sequence[Row]) -> None:
        """Add events in one transaction: (id, project, session, shared, type, key, value, metadata, time).

        Those whose id the process has used already are left out. Returns once all are durable. Raises StoreError.
        """

    def add_vectors(self, rows: Sequence[Row]) -> None:
        """Set the vectors of events in one transaction: (number, model, vector). Raises StoreError."""

    def replace_content(self, number: int, kind: str, value: str, metadata: str) -> None:
        """Replace type, value and metadata of an event of this process. Raises StoreError."""

    def faults(self) -> list[str]:
        """What is wrong with the store itself, in plain words."""

    def repair(self) -> None:
        """Mend what `faults` finds, as far as can be. Raises StoreError."""

    def close(self) -> None:
        """End the use of the store."""


def sql_in(file: str) -> str:
    """The SQL of a file beside the stores."""
    return packaged_text("tracing.trace_memory.stores", file)


def row_of(event: Event, redaction: Redaction | None) -> Row:
    """An event as a row, without what `redaction` takes out.

    Raises:
        DataError: its type is unknown, or no store can hold it.
    """
    if not isinstance(event.metadata, Mapping):
        raise DataError(f"metadata: is a {type(event.metadata).__name__}; give a mapping")
    if redaction is not None:
        try:
            event = replace(
                event,
                key=redaction.text(event.key),
                value=redaction.value(event.value),
                metadata=redaction.value(dict(event.metadata)),
            )
        except RecursionError:
            raise DataError(f"event {event.id}: is nested more than {DEEPEST} levels deep; give less of it") from None
    check_type(event.type)
    return (
        checked_name("id", event.id),
        checked_name("project", event.project, empty=True),
        checked_name("session", event.session, empty=True),
        int(event.shared),
        event.type,
        checked_name("key", event.key),
        as_json("value", event.value),
        as_json("metadata", dict(event.metadata)),
        moment(event.time),
    )


def event_of(row: Row) -> Event:
    """The event of a row. Raises StoreError: its content cannot be read."""
    _, event, entity, process, project, session, shared, kind, key, value, metadata, time = row
    try:
        facts = json.loads(metadata)
        if not isinstance(facts, dict):
            raise ValueError("its metadata is not a mapping")
        return Event(
            str(event),
            kind,
            key,
            json.loads(value),
            facts,
            float(time),
            entity,
            process,
            project,
            session,
            bool(shared),
        )
    except (TypeError, ValueError) as error:
        raise StoreError(f"event {event!r} cannot be read ({error}); call repair()") from None
