"""Which operations made and read a variable, and which versions follow it: the index behind a graph's queries.

The queries walk over it: slices from a variable on, shortest paths, the surroundings and the past of an operation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress, count, filterfalse
from operator import attrgetter

from msgspec.structs import replace

from tracing.graph.elements import Link, Operation, Variable

Users = int | dict[int, None] | None
"""Places of operations in the order seen. Nearly always it is one; a million dicts of one would fill the memory."""

Cut = tuple[set[int], set[int]]
"""Places of the variables of a part of a graph, and of its operations."""

Admits = Callable[[Operation], bool]
"""Whether a walk may go through an operation."""

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
        "_extents",
        "_lock",
        "_pending",
        "_whole",
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
        self._extents: tuple[list[int], list[int], dict[str, str], dict[str, list[int]]] | None = None
        self._whole: tuple[Neighbours, int] | None = None
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

    def note_all(
        self, variables: Iterable[Variable], operations: Iterable[Operation], whole: Neighbours | None = None
    ) -> None:
        """Take notice of many at once, as a part of a graph whose index may be asked while the part does not grow."""
        self._pending.extend(variables)
        self._pending.extend(operations)
        self._whole = None if whole is None else (whole, len(self._pending))

    def resolve(self, variable: Variable) -> None:
        """Let a variable take the place of the reference to it."""
        place = self.caught_up().variable_places[variable.id]
        with self._lock:
            self.variables[place] = variable
            if variable.previous is not None:
                self._add_version(variable.previous, place)

    def producers(self, vid: str) -> list[Operation]:
        """The operations that made the variable, and others of the whole graph where this is an unindexed part."""
        near = self.at_hand()
        return [near.operations[place] for place in tuple(users(near.made_by[near.variable_places[vid]]))]

    def consumers(self, vid: str) -> list[Operation]:
        """The operations that read the variable, likewise."""
        near = self.at_hand()
        return [near.operations[place] for place in tuple(users(near.read_by[near.variable_places[vid]]))]

    def at_hand(self) -> Neighbours:
        """The index of the whole, while this is of a part of it that was neither grown nor indexed; else this one."""
        if self._whole is not None and len(self._pending) == self._whole[1]:
            return self._whole[0]
        return self.caught_up()

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
                self._extents = self._whole = None
                del self._pending[:count]
        return self

    # --- parts of the graph ----------------------------------------------------------------------------------------

    def backward(self, vids: Iterable[str], admits: Admits | None, depth: int | None) -> Cut:
        """All that the variables were made from, through operations and earlier versions."""
        self.caught_up()
        return self._walk(vids, self.made_by, self.reads, self.earlier, admits, depth)

    def forward(self, vids: Iterable[str], admits: Admits | None, depth: int | None) -> Cut:
        """All that was made from the variables, through operations and later versions."""
        self.caught_up()
        return self._walk(vids, self.read_by, self.makes, self.later, admits, depth)

    def _walk(
        self,
        vids: Iterable[str],
        operations_at: Sequence[Users],
        links_of: Sequence[tuple[int, ...]],
        versions: Mapping[int, Sequence[int]],
        admits: Admits | None,
        depth: int | None,
    ) -> Cut:
        variables = {self.variable_places[vid] for vid in vids}
        passed: set[int] = set()
        frontier, steps = list(variables), 0
        while frontier and (depth is None or steps < depth):
            steps += 1
            reached: list[int] = []
            for place in frontier:
                entry = operations_at[place]
                for operation in (entry,) if type(entry) is int else tuple(users(entry)):
                    if operation in passed:
                        continue
                    if admits is not None and not admits(self.operations[operation]):
                        continue
                    passed.add(operation)
                    for other in links_of[operation]:
                        if other not in variables:
                            variables.add(other)
                            reached.append(other)
                if place in versions:
                    for other in versions[place]:
                        if other not in variables:
                            variables.add(other)
                            reached.append(other)
            frontier = reached
        return variables, passed

    def shortest_path(self, source: str, target: str, admits: Admits | None) -> list[Variable | Operation]:
        """Variables and operations by turns from source to target; where a version follows a version, no operation."""
        self.caught_up()
        first, last = self.variable_places[source], self.variable_places[target]
        came: dict[int, tuple[int, int | None] | None] = {first: None}
        queue = [first]
        for place in queue:
            if place == last:
                break
            for operation in tuple(users(self.read_by[place])):
                if admits is None or admits(self.operations[operation]):
                    for result in self.makes[operation]:
                        if result not in came:
                            came[result] = (place, operation)
                            queue.append(result)
            for following in self.later.get(place, ()):
                if following not in came:
                    came[following] = (place, None)
                    queue.append(following)
        if last not in came:
            return []
        path: list[Variable | Operation] = [self.variables[last]]
        step = came[last]
        while step is not None:
            before, through = step
            if through is not None:
                path.append(self.operations[through])
            path.append(self.variables[before])
            step = came[before]
        return path[::-1]

    def surroundings(self, oid: str) -> Cut:
        """An operation with those nested in it, their variables, and the operations these come from and go to."""
        self.caught_up()
        inside = self._nested(oid)
        operations = set(inside)
        read = {variable for place in inside for variable in self.reads[place]}
        outputs = {variable for place in inside for variable in self.makes[place]}
        for index, variables in ((self.made_by, read), (self.read_by, outputs)):
            for variable in variables:
                operations.update(tuple(users(index[variable])))
        return read | outputs, operations

    def until(self, oid: str) -> Cut:
        """An operation, all that it came from, and all that was recorded before it.

        Of operations that it was nested in, that are nested in it, or that outlasted it, only what was recorded before
        its first output counts; the same goes for what no operation made.
        """
        self.caught_up()
        at = self.operation_places[oid]
        operation, (latest, earliest, outer, _) = self.operations[at], self._extent()
        last_read = max(self.reads[at], default=-1)
        first = min(self.makes[at], default=last_read + 1)
        crossing = {place for place in range(at) if latest[place] >= first}
        crossing.update(place for place in range(at + 1, len(earliest)) if earliest[place] < first)
        variables, origins, around = set[int](), set[int](), frozenset(operations_around(outer, oid))
        if crossing or last_read >= first or any(before > place for place, (before,) in self.earlier.items()):
            # Only then can it come from what was recorded after it.
            variables, origins = self.backward(operation.input_ids(), None, None)
        inside = {place for place in self._nested(oid) if oid in operations_around(outer, self.operations[place].id)}
        operations = {*range(at + 1), *inside, *origins}
        for place in operations & {at, *crossing, *inside, *(place for place in origins if place > at)}:
            other, links = self.operations[place], {*self.reads[place], *self.makes[place]}
            before = place < at or place in origins
            outlasts = operation.ended is not None and other.ended is not None and other.ended > operation.ended
            if place != at and (not before or other.id in around or outlasts):
                links = {variable for variable in links if variable < first}
            variables |= links
        later = {variable for place in crossing - operations for variable in self.makes[place]} - variables
        variables.update(range(first))
        for variable in later:
            if operations.isdisjoint((*users(self.read_by[variable]), *users(self.made_by[variable]))):
                variables.discard(variable)
        return variables, operations

    def _nested(self, oid: str) -> list[int]:
        """An operation, and those nested in it."""
        inside, children = {self.operation_places[oid]: None}, self._extent()[3]
        queue = list(inside)
        for place in queue:
            fresh = [child for child in children.get(self.operations[place].id, ()) if child not in inside]
            inside.update(dict.fromkeys(fresh))  # a damaged file may hold a circle of parents
            queue += fresh
        return queue

    def _extent(self) -> tuple[list[int], list[int], dict[str, str], dict[str, list[int]]]:
        """For each operation its latest variable and the earliest that it made; what is around which, and inside it."""
        with self._lock:
            if self._extents is None:
                links = zip(self.reads, self.makes, strict=True)
                latest = [max((*reads, *makes), default=-1) for reads, makes in links]
                earliest = [min(makes, default=len(self.variables)) for makes in self.makes]
                outer = outer_operations({operation.id: operation for operation in self.operations})
                children: dict[str, list[int]] = {}
                for place, operation in enumerate(self.operations):
                    if operation.parent is not None:
                        children.setdefault(operation.parent, []).append(place)
                self._extents = latest, earliest, outer, children
            return self._extents

    def cut(self, operations: Iterable[int], variables: set[int]) -> list[Operation]:
        """Operations with only the links to some variables; one that keeps all and has ended stays itself."""
        operations_cut = []
        all_kept, is_kept = variables.issuperset, variables.__contains__
        missing = next(filterfalse(is_kept, count()))
        with self._lock:  # an operation and its links are of one moment
            latest = self._extents[0] if self._extents is not None else ()
            for place in operations:
                operation, reads, makes = self.operations[place], self.reads[place], self.makes[place]
                inputs, outputs = operation.inputs, operation.outputs
                early = bool(latest) and latest[place] < missing
                if len(inputs) != len(reads) or not (early or all_kept(reads)):
                    inputs = tuple(compress(inputs, map(is_kept, reads)))
                if len(outputs) != len(makes) or not (early or all_kept(makes)):
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


def operations_around(outer: Mapping[str, str], oid: str) -> Iterator[str]:
    """The operations that one is nested in, from within to without, by what `outer_operations` gives."""
    while oid in outer:
        oid = outer[oid]
        yield oid


def outer_operations(operations: Mapping[str, Operation]) -> dict[str, str]:
    """Id of an operation → id of the one around it, for each that has one among them.

    The result is a forest: operations that name each other as parents in a circle, as in a damaged file, have none
    around them. Time and memory are linear in the operations, however deep they are nested.
    """
    settled: set[str] = set()
    circles: set[str] = set()
    for oid in list(operations):
        path: dict[str, None] = {}
        at: str | None = oid
        while at is not None and at in operations and at not in settled and at not in path:
            path[at] = None
            at = operations[at].parent
        if at in path:
            way = list(path)
            circles.update(way[way.index(at) :])
        settled.update(path)
    return {
        oid: operation.parent
        for oid, operation in list(operations.items())
        if operation.parent is not None and operation.parent in operations and oid not in circles
    }
