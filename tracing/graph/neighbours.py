"""Which operations made and read a variable, and which versions follow it: the index behind a graph's queries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from tracing.graph.elements import Link, Operation, Variable

Entry = str | dict[str, None]
"""Operations of a variable in the order seen. Nearly always it is one; a million dicts of one would fill the memory."""


class Neighbours:
    """The index of a graph that grows. Growing only notes what came; the first query after it does the work.

    Recording and loading therefore pay next to nothing for queries that nobody makes. One thread may grow the graph
    while others ask.

    Attributes:
        note: takes a new variable, or a new operation with the links it has by the time somebody asks.
    """

    __slots__ = (
        "_consumers",
        "_lock",
        "_next_versions",
        "_operation_places",
        "_pending",
        "_places",
        "_producers",
        "note",
    )

    def __init__(self) -> None:
        self._pending: list[Variable | Operation | tuple[str, tuple[Link, ...], tuple[Link, ...]]] = []
        self.note: Callable[[Variable | Operation], None] = self._pending.append
        self._lock = threading.Lock()
        self._producers: dict[str, Entry] = {}
        self._consumers: dict[str, Entry] = {}
        self._next_versions: dict[str, list[str]] = {}
        self._places: dict[str, int] = {}
        self._operation_places: dict[str, int] = {}

    # --- growing: call these once the graph itself holds the items ------------------------------------------------

    def note_links(self, oid: str, inputs: tuple[Link, ...], outputs: tuple[Link, ...]) -> None:
        """Take notice of further links of an operation."""
        self._pending.append((oid, inputs, outputs))

    def note_all(self, variables: Iterable[Variable], operations: Iterable[Operation]) -> None:
        """Take notice of many at once, of operations with all their links."""
        self._pending.extend(variables)
        self._pending.extend(operations)

    # --- asking ----------------------------------------------------------------------------------------------------

    def producers(self, vid: str) -> tuple[str, ...]:
        """Ids of the operations that made the variable."""
        self._catch_up()
        return _ids(self._producers.get(vid))

    def consumers(self, vid: str) -> tuple[str, ...]:
        """Ids of the operations that read the variable."""
        self._catch_up()
        return _ids(self._consumers.get(vid))

    def producer_index(self) -> Mapping[str, Entry]:
        """The operations that made each variable, by its id."""
        self._catch_up()
        return self._producers

    def consumer_index(self) -> Mapping[str, Entry]:
        """The operations that read each variable, by its id."""
        self._catch_up()
        return self._consumers

    def next_versions(self, vid: str) -> tuple[str, ...]:
        """Ids of the variables that name this one as the version before them."""
        self._catch_up()
        return tuple(self._next_versions.get(vid, ()))

    def in_order(self, variables: Iterable[str]) -> list[str]:
        """Ids of variables in the order recorded."""
        self._catch_up()
        return sorted(variables, key=self._places.__getitem__)

    def operations_in_order(self, operations: Iterable[str]) -> list[str]:
        """Ids of operations in the order recorded."""
        self._catch_up()
        return sorted(operations, key=self._operation_places.__getitem__)

    def _catch_up(self) -> None:
        if not self._pending:
            return
        with self._lock:
            count = len(self._pending)
            places, operation_places = self._places, self._operation_places
            for entry in self._pending[:count]:
                if isinstance(entry, Variable):
                    places.setdefault(entry.id, len(places))
                    if entry.previous is not None:
                        self._next_versions.setdefault(entry.previous, []).append(entry.id)
                    continue
                if isinstance(entry, Operation):
                    entry = (entry.id, entry.inputs, entry.outputs)
                oid, inputs, outputs = entry
                operation_places.setdefault(oid, len(operation_places))
                for links, index in ((inputs, self._consumers), (outputs, self._producers)):
                    for _, vid in links:
                        known = index.setdefault(vid, oid)
                        if known is oid or known == oid:
                            continue
                        if isinstance(known, str):
                            index[vid] = {known: None, oid: None}
                        else:
                            known[oid] = None
            del self._pending[:count]


def _ids(entry: Entry | None) -> tuple[str, ...]:
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, str) else tuple(entry)
