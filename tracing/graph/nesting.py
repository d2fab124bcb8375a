"""Which operation ran inside which."""

from __future__ import annotations

from tracing.graph.contents import GraphContents


def outer_operations(graph: GraphContents) -> dict[str, str]:
    """Id of an operation → id of the one around it, for each that has one in the graph.

    The result is a forest: operations that name each other as parents in a circle, as in a damaged file, have none
    around them. Time and memory are linear in the operations, however deep they are nested.
    """
    operations = graph.operations
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
