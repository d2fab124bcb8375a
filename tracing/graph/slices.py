"""What a variable depends on and what depends on it: slices, shortest paths and the surroundings of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec.structs import replace

from tracing.graph.contents import GraphContents
from tracing.graph.elements import Link, Operation, Variable
from tracing.graph.filters import Filter
from tracing.graph.neighbours import Entry

Cut = tuple[Iterable[str], dict[str, Operation]]
"""Ids of the variables of a part of a graph, and its operations by id, whole and in any order."""


def backward(graph: GraphContents, vids: Iterable[str], only: Filter | None, depth: int | None) -> Cut:
    """All that the variables were made from, through operations and earlier versions, at most `depth` steps away."""
    return _walk(graph, vids, graph.neighbours.producer_index(), _INPUTS, None, only, depth)


def forward(graph: GraphContents, vids: Iterable[str], only: Filter | None, depth: int | None) -> Cut:
    """All that was made from the variables, through operations and later versions, at most `depth` steps away."""
    near = graph.neighbours
    return _walk(graph, vids, near.consumer_index(), _OUTPUTS, near.next_versions, only, depth)


_INPUTS, _OUTPUTS = attrgetter("inputs"), attrgetter("outputs")


def _walk(
    graph: GraphContents,
    vids: Iterable[str],
    operations_at: Mapping[str, Entry],
    links_of: Callable[[Operation], tuple[Link, ...]],
    later_versions: Callable[[str], Sequence[str]] | None,
    only: Filter | None,
    depth: int | None,
) -> Cut:
    variables, known = graph.variables, graph.operations
    seen = dict.fromkeys(vids)
    operations: dict[str, Operation] = {}
    frontier, steps = list(seen), 0
    while frontier and (depth is None or steps < depth):
        steps += 1
        reached: list[str] = []
        for vid in frontier:
            entry = operations_at.get(vid, ())
            for oid in (entry,) if type(entry) is str else tuple(entry):
                if oid in operations:
                    continue
                operation = known[oid]
                if only is not None and not only.admits(operation, graph.sessions):
                    continue
                operations[oid] = operation
                for _, other in links_of(operation):
                    if other not in seen:
                        seen[other] = None
                        reached.append(other)
            if later_versions is not None:
                versions = later_versions(vid)
            else:
                previous = variables[vid].previous
                versions = (previous,) if previous is not None and previous in variables else ()
            for other in versions:
                if other not in seen:
                    seen[other] = None
                    reached.append(other)
        frontier = reached
    return seen, operations


def shortest_path(graph: GraphContents, source: str, target: str, only: Filter | None) -> list[Variable | Operation]:
    """Variables and operations by turns from source to target; where a version follows a version, no operation."""
    came: dict[str, tuple[str, str | None]] = {source: ("", None)}
    queue = [source]
    for vid in queue:
        if vid == target:
            break
        for oid in graph.neighbours.consumers(vid):
            operation = graph.operations[oid]
            if only is None or only.admits(operation, graph.sessions):
                for _, result in operation.outputs:
                    if result not in came:
                        came[result] = (vid, oid)
                        queue.append(result)
        for following in graph.neighbours.next_versions(vid):
            if following not in came:
                came[following] = (vid, None)
                queue.append(following)
    if target not in came:
        return []
    path: list[Variable | Operation] = []
    at = target
    while at:
        path.append(graph.variables[at])
        at, through = came[at]
        if through is not None:
            path.append(graph.operations[through])
    return path[::-1]


def surroundings(graph: GraphContents, oid: str) -> Cut:
    """An operation with those nested in it, their variables, and the operations these come from and go to."""
    children: dict[str, list[str]] = {}
    for operation in list(graph.operations.values()):
        if operation.parent is not None:
            children.setdefault(operation.parent, []).append(operation.id)
    inside = [oid]
    seen = {oid}
    for one in inside:
        for child in children.get(one, ()):
            if child not in seen:  # a damaged file may hold a circle of parents
                seen.add(child)
                inside.append(child)
    operations = {one: graph.operations[one] for one in inside}
    read: dict[str, None] = {}
    made: dict[str, None] = {}
    for operation in operations.values():
        read.update(dict.fromkeys(operation.input_ids()))
        made.update(dict.fromkeys(operation.output_ids()))
    for neighbours, vids in ((graph.neighbours.producers, read), (graph.neighbours.consumers, made)):
        for vid in vids:
            operations.update((one, graph.operations[one]) for one in neighbours(vid))
    variables = {**read, **made}
    return variables, operations


def narrowed(operation: Operation, variables: dict[str, Variable]) -> Operation:
    """The operation with only the links that lead to `variables`; one that keeps all and has ended stays itself."""
    inputs, outputs = _kept(operation.inputs, variables), _kept(operation.outputs, variables)
    if inputs is operation.inputs and outputs is operation.outputs and operation.status != "open":
        return operation
    return replace(operation, inputs=inputs, outputs=outputs)


def _kept(links: tuple[Link, ...], variables: dict[str, Variable]) -> tuple[Link, ...]:
    for _, vid in links:
        if vid not in variables:
            return tuple([link for link in links if link[1] in variables])
    return links
