"""Which operations made and read a variable, and which versions follow it: the index behind a graph's queries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from itertools import compress
from operator import attrgetter

from msgspec.structs import replace

from tracing.graph.elements import Link, Operation, Variable

Users = int | dict[int, None] | None
"""Places of operations in the order seen. Nearly always it is one; a million dicts of one would fill the memory."""

_id, _previous = attrgetter("id"), attrgetter("previous")


class Neighbours:
    """The index of a graph that grows. Growing only notes what came; the first query after it does the work.

    Recording and loading therefore pay next to nothing for queries that nobody makes. One thread may grow the graph
    while others ask.

    Inside, a variable or operation is its place, a number that counts up in the order recorded. Queries go from place
    to place, since reading from a list of a million takes far less time than from a dictionary of a million ids.

    Attributes:
        note: takes a new variable; or an operation that is new, has further links, or takes the place of another with
            its id. Its links count as far as it has them by the time somebody asks.
        variables, operations: by place. These and all that follow are as of the latest `caught_up`.
        variable_places, operation_places: by id.
        made_by, read_by: for each variable, the operations.
        reads, makes: for each operation, the variables, in order.
        earlier, later: the versions before and after a variable; only of those that have any.
    """

    __slots__ = (
        "_awaited",
        "_lock",
        "_pending",
        "earlier",
        "later",
        "made_by",
        "makes",
        "note",
        "operation_places",
        "operations",
        "read_by",
        "reads",
        "variable_places",
        "variables",
    )

    def __init__(self) -> None:
        self._pending: list[Variable | Operation] = []
        self.note: Callable[[Variable | Operation], None] = self._pending.append
        self._lock = threading.Lock()
        self._awaited: dict[str, list[int]] = {}
        self.variables: list[Variable] = []
        self.operations: list[Operation] = []
        self.variable_places: dict[str, int] = {}
        self.operation_places: dict[str, int] = {}
        self.made_by: list[Users] = []
        self.read_by: list[Users] = []
        self.reads: list[tuple[int, ...]] = []
        self.makes: list[tuple[int, ...]] = []
        self.earlier: dict[int, tuple[int, ...]] = {}
        self.later: dict[int, list[int]] = {}

    def note_all(self, variables: Iterable[Variable], operations: Iterable[Operation]) -> None:
        """Take notice of many at once."""
        self._pending.extend(variables)
        self._pending.extend(operations)

    def resolve(self, variable: Variable) -> None:
        """Let a variable take the place of the reference to it."""
        place = self.caught_up().variable_places[variable.id]
        with self._lock:
            self.variables[place] = variable
            if variable.previous is not None:
                self._add_version(variable.previous, place)

    def producers(self, vid: str) -> dict[int, None] | tuple[int, ...]:
        """The operations that made the variable. Not a copy: copy it where the graph may grow meanwhile."""
        return users(self.made_by[self.caught_up().variable_places[vid]])

    def consumers(self, vid: str) -> dict[int, None] | tuple[int, ...]:
        """The operations that read the variable, likewise."""
        return users(self.read_by[self.caught_up().variable_places[vid]])

    def caught_up(self) -> Neighbours:
        """This index, with all in it that was noted by now."""
        if self._pending:
            with self._lock:
                count = len(self._pending)
                noted = self._pending[:count]
                variables = [entry for entry in noted if isinstance(entry, Variable)]
                if variables:
                    self._add_variables(variables)
                if len(variables) < count:
                    # Last, since one that was noted when it began may have outputs that were noted later.
                    for entry in noted:
                        if isinstance(entry, Operation):
                            self._add_operation(entry)
                del self._pending[:count]
        return self

    def cut(self, operations: Iterable[int], variables: set[int]) -> list[Operation]:
        """Operations with only the links to some variables; one that keeps all and has ended stays itself."""
        operations_cut = []
        all_kept, is_kept = variables.issuperset, variables.__contains__
        with self._lock:  # an operation and its links are of one moment
            for place in operations:
                operation, reads, makes = self.operations[place], self.reads[place], self.makes[place]
                inputs, outputs = operation.inputs, operation.outputs
                if len(inputs) != len(reads) or not all_kept(reads):
                    inputs = tuple(compress(inputs, map(is_kept, reads)))
                if len(outputs) != len(makes) or not all_kept(makes):
                    outputs = tuple(compress(outputs, map(is_kept, makes)))
                if inputs is not operation.inputs or outputs is not operation.outputs or operation.status == "open":
                    operation = replace(operation, inputs=inputs, outputs=outputs)
                operations_cut.append(operation)
        return operations_cut

    # Another thread may walk meanwhile: what leads to a place comes after what stands there.

    def _add_variables(self, variables: list[Variable]) -> None:
        first = len(self.variables)
        self.variables += variables
        self.made_by += [None] * len(variables)
        self.read_by += [None] * len(variables)
        self.variable_places.update(zip(map(_id, variables), range(first, first + len(variables)), strict=True))
        if self._awaited:
            for previous in self._awaited.keys() & self.variable_places.keys():
                for place in self._awaited.pop(previous):
                    self._add_version(previous, place)
        for place, previous in enumerate(map(_previous, variables), first):
            if previous is not None:
                self._add_version(previous, place)

    def _add_version(self, previous: str, place: int) -> None:
        before = self.variable_places.get(previous)
        if before is None:
            self._awaited.setdefault(previous, []).append(place)
        else:
            self.earlier[place] = (before,)
            self.later.setdefault(before, []).append(place)

    def _add_operation(self, operation: Operation) -> None:
        place = self.operation_places.get(operation.id)
        if place is None:
            place = len(self.operations)
            self.reads.append(())
            self.makes.append(())
            self.operations.append(operation)
            self.operation_places[operation.id] = place
        elif self.operations[place] is not operation:
            self.operations[place] = operation
            self.reads[place] = self.makes[place] = ()
        if len(operation.inputs) != len(self.reads[place]):
            self._add_links(place, operation.inputs, self.reads, self.read_by)
        if len(operation.outputs) != len(self.makes[place]):
            self._add_links(place, operation.outputs, self.makes, self.made_by)

    def _add_links(
        self, operation: int, links: tuple[Link, ...], places_by_operation: list[tuple[int, ...]], index: list[Users]
    ) -> None:
        """Index those of an operation's links that are not known."""
        before, places = places_by_operation[operation], self.variable_places
        try:
            further = tuple([places[vid] for _, vid in links[len(before) :]])
        except KeyError:
            return  # one came while this was looked at; behind it, the operation is noted once more
        places_by_operation[operation] = before + further
        for variable in further:
            entry = index[variable]
            if entry is None:
                index[variable] = operation
            elif isinstance(entry, dict):
                entry[operation] = None
            elif entry != operation:
                index[variable] = dict.fromkeys((entry, operation))


def users(entry: Users) -> dict[int, None] | tuple[int, ...]:
    """The places in an entry."""
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, int) else entry
