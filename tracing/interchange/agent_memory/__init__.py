"""Traces of agents that memtune did not record, as the graph of a memory that attribution can follow.

Spans show calls to models and to tools. `interpreted` finds the turns of the users in them, and in the calls of tools
what a memory stored, changed, deleted and gave: messages, facts, entries with their versions, context, predictions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.agent_memory.mapping import Mapped, renamed, roles_in
from tracing.interchange.agent_memory.memory_graph import BY_TEXT, LINKED, STAGE, MemoryGraph
from tracing.interchange.agent_memory.roles import Role, role_of, says_nothing_of_it
from tracing.interchange.agent_memory.turns import calls_of, turns_of, user_argument

__all__ = ["BY_TEXT", "LINKED", "STAGE", "interpreted", "is_interpreted", "unclear_tools"]

_RECORDED = frozenset(("memory_entry", "fact", "delete_marker"))
"""Kinds of variables of a trace in which a memory was recorded as such."""


def interpreted(graph: ExecutionGraph, mapping: Mapping[str, Mapped] | None = None) -> ExecutionGraph:
    """The graph of the memory that an agent's operations show; `graph` itself where they show none.

    Nor is one interpreted in which a memory was recorded as such.

    Args:
        graph: as another tool, or the recording of a framework, gives it.
        mapping: by names of tools or operations, what these do where their names do not tell.

    Example:
        >>> interpreted(ExecutionGraph()).operations
        {}
    """
    if _is_recorded(graph):
        return graph
    mapping = mapping or {}
    turns = turns_of(graph, mapping)
    for turn in turns:
        turn.calls = [
            replace(
                call,
                arguments=mapping[call.tool].applied(call.arguments) if call.tool in mapping else call.arguments,
                result=renamed(call.result, mapping),
            )
            for call in turn.calls
        ]
        turn.user = turn.user or next(filter(None, map(user_argument, turn.calls)), "")
    calls = [call for turn in turns for call in turn.calls]
    roles = roles_in(calls, mapping)
    if set(roles.values()) <= {"other"}:
        return graph
    doing: defaultdict[str, set[Role]] = defaultdict(set)
    for call in calls:
        doing[call.tool].add(roles[call.operation.id])
    building = MemoryGraph(lambda call: roles[call.operation.id])
    for turn in turns:
        # An operation does one thing: what one tool does by an argument are several.
        turn.calls = [
            replace(call, tool=f"{call.tool} ({roles[call.operation.id]})") if len(doing[call.tool]) > 1 else call
            for call in turn.calls
        ]
        building.add(turn, writes=not {"store", "update"}.isdisjoint(roles.values()))
    return building.graph(graph.attributes)


def unclear_tools(graph: ExecutionGraph) -> list[str]:
    """The tools whose names do not tell what they do with a memory: it is guessed from calls, or unknown.

    Example:
        >>> unclear_tools(ExecutionGraph())
        []
    """
    if _is_recorded(graph):
        return []
    calls = calls_of(graph)
    roles = roles_in(calls, {})
    unclear = (
        call.tool
        for call in calls
        if call.operation.kind != "retrieval"
        and role_of(call.tool, call.arguments) is None
        and (roles[call.operation.id] != "other" or says_nothing_of_it(call.tool))
    )
    return list(dict.fromkeys(unclear))


def is_interpreted(graph: ExecutionGraph) -> bool:
    """Whether a graph is one that `interpreted` made."""
    return any(STAGE in operation.attributes for operation in graph.operations.values())


def _is_recorded(graph: ExecutionGraph) -> bool:
    """Whether a graph has a memory, or an answer to a question, recorded as such."""
    if any(variable.kind in _RECORDED for variable in graph.variables.values()):
        return True
    queries = {variable.id for variable in graph.find_variables(kind="query")}
    replies = (
        maker for prediction in graph.find_variables(kind="prediction") for maker in graph.producers(prediction.id)
    )
    return any(not queries.isdisjoint(maker.input_ids()) for maker in replies)
