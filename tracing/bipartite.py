"""The execution graph as networkx knows graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx

if TYPE_CHECKING:
    from tracing.graph import ExecutionGraph


def digraph(graph: ExecutionGraph) -> networkx.DiGraph:
    """The graph with edges variable → operation → variable, as `ExecutionGraph.nx` describes it."""
    built = networkx.DiGraph()
    for variable in list(graph.variables.values()):
        built.add_node(
            variable.id,
            type="variable",
            name=variable.name,
            kind=variable.kind,
            session=variable.session,
            version=variable.version,
            previous=variable.previous,
        )
    for operation in list(graph.operations.values()):
        oid = operation.id
        built.add_node(oid, type="operation", name=operation.name, kind=operation.kind, session=operation.session)
        for links, inward in ((operation.inputs, True), (operation.outputs, False)):
            for role, vid in links:
                edge = (vid, oid) if inward else (oid, vid)
                roles = built.edges[edge]["roles"] if built.has_edge(*edge) else ()
                built.add_edge(*edge, roles=(*roles, role))
    return built
