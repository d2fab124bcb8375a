"""The consistency check of a trace memory and its repair."""

from __future__ import annotations

from dataclasses import dataclass

from tracing.trace_memory.event_filters import SELECTED
from tracing.trace_memory.events import DAMAGED, TYPES, as_json
from tracing.trace_memory.stores.storage import Row, Storage, StoreError, event_of

_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a store; `event` is the id of the event concerned, or empty."""

    what: str
    event: str = ""

    def __str__(self) -> str:
        return f"event {self.event}: {self.what}" if self.event else self.what


def check(storage: Storage) -> list[Problem]:
    """What is wrong with the store and with the events that its tenant sees."""
    return [
        *(Problem(fault) for fault in storage.faults()),
        *(Problem(fault, str(row[1])) for row, fault in _damaged(storage)),
        *(Problem("its vector is broken", str(event)) for _, event in _broken_vectors(storage)),
    ]


def repair(storage: Storage, tenant_process: str) -> list[Problem]:
    """Mend what `check` finds, and return what that was.

    An event whose content cannot be read keeps it as a text, with the type `damaged`. A broken vector is made again by
    the next search.

    Raises:
        StoreError: the store itself cannot be repaired.
    """
    problems = check(storage)
    storage.repair()
    for row, _ in _damaged(storage):
        number, process, kind, value, metadata = row[0], row[3], row[7], row[9], row[10]
        if process == tenant_process:
            raw = {"type": kind, "value": value, "metadata": metadata}
            storage.replace_content(number, DAMAGED, as_json("value", raw), "{}")
    storage.add_vectors([(number, "", b"") for number, _ in _broken_vectors(storage)])
    return problems


def _damaged(storage: Storage) -> list[tuple[Row, str]]:
    damaged = []
    for rows in storage.stream(f"SELECT {SELECTED} FROM events e ORDER BY e.number"):
        for row in rows:
            try:
                event = event_of(row)
            except StoreError as error:
                damaged.append((row, str(error)))
                continue
            if event.type not in (*TYPES, DAMAGED):
                damaged.append((row, f"has the unknown type {event.type!r}"))
    return damaged


def _broken_vectors(storage: Storage) -> list[tuple[int, str]]:
    """Vectors that are not of the length most common for their model, each with its event's id."""
    lengths: dict[str, dict[int, int]] = {}
    query = "SELECT v.model, length(v.vector), count(*) FROM vectors v GROUP BY v.model, length(v.vector)"
    for model, length, count in storage.read(query):
        lengths.setdefault(str(model), {})[int(length)] = int(count)
    broken = []
    for model, counts in lengths.items():
        usual = max((length for length in counts if length % _FLOAT_BYTES == 0), key=counts.__getitem__, default=-1)
        for length in set(counts) - {usual}:
            query = (
                "SELECT e.number, e.id FROM events e JOIN vectors v ON v.event = e.number "
                "WHERE v.model = ? AND length(v.vector) = ?"
            )
            broken += [(int(number), str(event)) for number, event in storage.read(query, (model, length)) if model]
    return broken
