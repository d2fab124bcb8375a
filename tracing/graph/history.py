"""The past of an operation: what a graph held by the time it ended, in the order recorded."""

from __future__ import annotations

from tracing.graph import slices
from tracing.graph.contents import GraphContents
from tracing.graph.nesting import outer_operations
from tracing.graph.slices import Cut


def until(graph: GraphContents, oid: str) -> Cut:
    """An operation, all that it came from, and all that was recorded before it.

    Of operations that it was nested in, that are nested in it, or that outlasted it, only what was recorded before its
    first output counts; the same goes for what no operation made.
    """
    near = graph.neighbours.caught_up()
    at = near.operation_places[oid]
    operation, outputs = near.operations[at], near.makes[at]
    first = min(outputs, default=max(near.reads[at], default=-1) + 1)
    variables, operations = slices.backward(graph, operation.input_ids(), None, None)
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
