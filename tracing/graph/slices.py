"""Parts of a graph: slices from a variable on, shortest paths, the surroundings and the past of an operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tracing.graph.contents import GraphContents, outer_operations
from tracing.graph.elements import Operation, Variable
from tracing.graph.neighbours import Users, users
from tracing.graph.operation_filter import Filter

Cut = tuple[set[int], set[int]]
"""Places of the variables of a part of a graph, and of its operations."""


def backward(graph: GraphContents, vids: Iterable[str], only: Filter | None, depth: int | None) -> Cut:
    """All that the variables were made from, through operations and earlier versions, at most `depth` steps away."""
    near = graph.neighbours.caught_up()
    return _walk(graph, vids, near.made_by, near.reads, near.earlier, only, depth)


def forward(graph: GraphContents, vids: Iterable[str], only: Filter | None, depth: int | None) -> Cut:
    """All that was made from the variables, through operations and later versions, at most `depth` steps away."""
    near = graph.neighbours.caught_up()
    return _walk(graph, vids, near.read_by, near.makes, near.later, only, depth)


def _walk(
    graph: GraphContents,
    vids: Iterable[str],
    operations_at: Sequence[Users],
    links_of: Sequence[tuple[int, ...]],
    versions: Mapping[int, Sequence[int]],
    only: Filter | None,
    depth: int | None,
) -> Cut:
    near = graph.neighbours
    variables = {near.variable_places[vid] for vid in vids}
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
                if only is not None and not only.admits(near.operations[operation], graph.sessions):
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


def shortest_path(graph: GraphContents, source: str, target: str, only: Filter | None) -> list[Variable | Operation]:
    """Variables and operations by turns from source to target; where a version follows a version, no operation."""
    near = graph.neighbours.caught_up()
    first, last = near.variable_places[source], near.variable_places[target]
    came: dict[int, tuple[int, int | None] | None] = {first: None}
    queue = [first]
    for place in queue:
        if place == last:
            break
        for operation in tuple(users(near.read_by[place])):
            if only is None or only.admits(near.operations[operation], graph.sessions):
                for result in near.makes[operation]:
                    if result not in came:
                        came[result] = (place, operation)
                        queue.append(result)
        for following in near.later.get(place, ()):
            if following not in came:
                came[following] = (place, None)
                queue.append(following)
    if last not in came:
        return []
    path: list[Variable | Operation] = [near.variables[last]]
    step = came[last]
    while step is not None:
        before, through = step
        if through is not None:
            path.append(near.operations[through])
        path.append(near.variables[before])
        step = came[before]
    return path[::-1]


def surroundings(graph: GraphContents, oid: str) -> Cut:
    """An operation with those nested in it, their variables, and the operations these come from and go to."""
    near = graph.neighbours.caught_up()
    children: dict[str, list[int]] = {}
    for place, operation in enumerate(near.operations):
        if operation.parent is not None:
            children.setdefault(operation.parent, []).append(place)
    inside = [near.operation_places[oid]]
    operations = set(inside)
    for place in inside:
        for child in children.get(near.operations[place].id, ()):
            if child not in operations:  # a damaged file may hold a circle of parents
                operations.add(child)
                inside.append(child)
    read = {variable for place in inside for variable in near.reads[place]}
    outputs = {variable for place in inside for variable in near.makes[place]}
    for index, variables in ((near.made_by, read), (near.read_by, outputs)):
        for variable in variables:
            operations.update(tuple(users(index[variable])))
    return read | outputs, operations


def until(graph: GraphContents, oid: str) -> Cut:
    """An operation, all that it came from, and all that was recorded before it.

    Of operations that it was nested in, that are nested in it, or that outlasted it, only what was recorded before its
    first output counts; the same goes for what no operation made.
    """
    near = graph.neighbours.caught_up()
    at = near.operation_places[oid]
    operation, outputs = near.operations[at], near.makes[at]
    first = min(outputs, default=max(near.reads[at], default=-1) + 1)
    variables, operations = backward(graph, operation.input_ids(), None, None)
    outer = outer_operations(graph)
    around = _around(outer, oid)
    later = set[int]()
    for place, other in enumerate(near.operations):
        before = place < at or place in operations
        if place != at and not before and oid not in _around(outer, other.id):
            later.update(near.makes[place])
            continue
        operations.add(place)
        links = {*near.reads[place], *near.makes[place]}
        outlasts = operation.ended is not None and other.ended is not None and other.ended > operation.ended
        if place != at and (not before or other.id in around or outlasts):
            links = {variable for variable in links if variable < first}
            later.update(variable for variable in near.makes[place] if variable > first)
        variables |= links
    variables.update(variable for variable in range(first) if variable not in later)
    return variables, operations


def _around(outer: dict[str, str], oid: str) -> list[str]:
    """The operations that one is nested in."""
    around = []
    while oid in outer:
        oid = outer[oid]
        around.append(oid)
    return around
