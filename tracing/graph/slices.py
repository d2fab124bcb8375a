"""What a variable depends on and what depends on it: slices, shortest paths and the surroundings of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

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
    steps = dict.fromkeys(vids, 0)
    operations: dict[str, Operation] = {}
    queue = list(steps)
    for vid in queue:
        step = steps[vid] + 1
        if depth is not None and step > depth:
            break  # the queue runs from near to far
        entry = operations_at.get(vid, ())
        for oid in (entry,) if type(entry) is str else tuple(entry):
            if oid in operations:
                continue
            operation = known[oid]
            if only is not None and not only.admits(operation, graph.sessions):
                continue
            operations[oid] = operation
            for _, other in links_of(operation):
                if other not in steps:
                    steps[other] = step
                    queue.append(other)
        if later_versions is not None:
            versions = later_versions(vid)
        else:
            previous = variables[vid].previous
            versions = (previous,) if previous is not None and previous in variables else ()
        for other in versions:
            if other not in steps:
                steps[other] = step
                queue.append(other)
    return steps, operations


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
    o = operation
    # `dataclasses.replace` takes three times as long, and a slice has thousands of these.
    # fmt: off
    return Operation(
        o.id, o.name, o.kind, inputs, outputs, o.parent, o.session, o.started, o.ended, o.status, o.error, o.model,
        o.calls, o.cached_calls, o.prompt_tokens, o.completion_tokens, o.cost, o.attributes,
    )
    # fmt: on


def _kept(links: tuple[Link, ...], variables: dict[str, Variable]) -> tuple[Link, ...]:
    kept = [link for link in links if link[1] in variables]
    return links if len(kept) == len(links) else tuple(kept)
