"""The execution graph as networkx knows graphs."""

from __future__ import annotations

import networkx

from tracing.graph.contents import GraphContents


def digraph(graph: GraphContents) -> networkx.DiGraph:
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
        edges: dict[tuple[str, str], list[str]] = {}
        for role, vid in operation.inputs:
            edges.setdefault((vid, oid), []).append(role)
        for role, vid in operation.outputs:
            edges.setdefault((oid, vid), []).append(role)
        for (source, target), roles in edges.items():
            built.add_edge(source, target, roles=tuple(roles))
    return built
