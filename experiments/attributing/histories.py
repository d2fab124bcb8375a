"""Traces that are one history: a memory was written in one and read in another, and a wrong answer needs both."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace

from tracing.errors import TraceError
from tracing.files.opening import read_file
from tracing.graph.elements import REFERENCE, Operation, Variable, reference_to
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import read_graph

ENTRY = "entry"
"""Attribute of a piece of context: id of the entry that it shows."""
_MARK = f'"{REFERENCE}"'.encode()
_KEY = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_KEYED, _KEYED_ENTRY = re.compile(_KEY), re.compile(rf'"name":"[^"]*{_KEY}[^"]*","kind":"memory_entry"'.encode())


@dataclass(frozen=True, slots=True)
class _Member:
    path: Path
    graph: ExecutionGraph
    began: float
    ended: float
    answers: bool


class Histories:
    """Which of the given traces belong together: those linked by references, directly or by way of others.

    A library keeps no id of ours with its entries, but a key of its own. So an entry that a trace has only read is the
    one that an earlier trace wrote under the same name with the same text, if that name holds a UUID.

    Where all links make one history, traces without an answer and without a link (nothing was stored of them) belong
    to it. Where there are several, nothing tells whose these are.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = [*paths]

    def before(self, path: Path) -> list[Path]:
        """The other traces of this one's history that began before it ended, the oldest first."""
        return [member.path for member in self._earlier(path)]

    def whole(self, path: Path, graph: ExecutionGraph) -> ExecutionGraph:
        """One graph of a trace, which is `graph` alone, and of those before it.

        Raises:
            TraceError: two traces use one id for different things.
        """
        own = next((member.graph for member in self._histories.get(path, ()) if member.path == path), graph)
        return _one_history(own, [(member.path.stem, member.graph) for member in self._earlier(path)])

    def _earlier(self, path: Path) -> list[_Member]:
        members = self._histories.get(path, ())
        ended = next((member.ended for member in members if member.path == path), math.inf)
        return [member for member in members if member.path != path and member.began <= ended]

    @cached_property
    def _histories(self) -> dict[Path, list[_Member]]:
        if not any(map(_may_be_linked, self._paths)):
            return {}  # of many traces without links, none is read twice
        members = [member for path in self._paths if (member := _member(path)) is not None]
        members.sort(key=lambda member: member.began)
        members = _with_entries_known(members)
        holders = {
            variable.id: place
            for place, member in enumerate(members)
            for variable in member.graph.variables.values()
            if not variable.is_reference
        }
        import networkx

        links = networkx.Graph()
        links.add_nodes_from(range(len(members)))
        links.add_edges_from(
            (place, holders[variable.id])
            for place, member in enumerate(members)
            for variable in references_in(member.graph)
            if variable.id in holders
        )
        groups = [[members[place] for place in sorted(group)] for group in networkx.connected_components(links)]
        linked_groups = [group for group in groups if len(group) > 1]
        if len(linked_groups) == 1:
            linked_groups[0] += [group[0] for group in groups if len(group) == 1 and not group[0].answers]
            linked_groups[0].sort(key=lambda member: member.began)
        return {member.path: group for group in linked_groups for member in group}


def references_in(graph: ExecutionGraph) -> list[Variable]:
    """The variables of a graph that stand for those of other traces."""
    return [variable for variable in graph.variables.values() if variable.is_reference]


def _one_history(own: ExecutionGraph, before: Sequence[tuple[str, ExecutionGraph]]) -> ExecutionGraph:
    """One graph of named traces and of the last one, in this order.

    Messages are known by their names, so those of other traces that share one have their trace's name before it.
    Versions are counted over all.
    """
    if not before:
        return own
    graphs = [*(graph for _, graph in before), own]
    named: defaultdict[str, set[str]] = defaultdict(set)
    for graph in graphs:
        for message in graph.find_variables(kind="message"):
            named[message.name].add(message.id)
    renamed = {
        message.id: f"{name}/{message.name}"
        for name, graph in before
        for message in graph.find_variables(kind="message")
        if len(named[message.name]) > 1 and message.id not in own.variables
    }
    variables = (
        replace(variable, name=renamed[variable.id]) if variable.id in renamed else variable
        for graph in graphs
        for variable in graph.variables.values()
    )
    history = ExecutionGraph(
        variables,
        (operation for graph in graphs for operation in graph.operations.values()),
        (session for graph in graphs for session in graph.sessions.values()),
        {key: value for graph in graphs for key, value in graph.attributes.items()},
    )
    return ExecutionGraph(
        _with_versions(history.variables.values()),
        history.operations.values(),
        history.sessions.values(),
        history.attributes,
    )


def _with_versions(variables: Iterable[Variable]) -> Iterable[Variable]:
    counts: dict[str, int] = {}
    for variable in variables:
        version = max(counts.get(variable.previous or "", 0) + 1, variable.version)
        counts[variable.id] = version
        yield variable if version == variable.version else replace(variable, version=version)


def _member(path: Path) -> _Member | None:
    try:
        graph, _ = read_graph(path)
    except TraceError:
        return None  # who attributes it reports it
    times = [
        time
        for operation in graph.operations.values()
        for time in (operation.started, operation.ended or operation.started)
    ]
    answers = any(variable.kind == "prediction" for variable in graph.variables.values())
    return _Member(path, graph, min(times, default=0.0), max(times, default=math.inf), answers)


def _may_be_linked(path: Path) -> bool:
    try:
        content = read_file(path)
    except OSError:
        return False
    return _MARK in content or _KEYED_ENTRY.search(content) is not None


def _with_entries_known(members: Sequence[_Member]) -> list[_Member]:
    """The traces, the oldest first, with a reference where one has read an entry that one before it wrote."""
    written: dict[tuple[str, str], str] = {}
    linked_members = []
    for member in members:
        graph, same = member.graph, dict[str, str]()
        for entry in graph.find_variables(kind="memory_entry"):
            key = entry.name, json.dumps(entry.value, sort_keys=True)
            if graph.producers(entry.id):
                if _KEYED.search(entry.name):
                    written[key] = entry.id
            elif key in written:
                same[entry.id] = written[key]
        linked_members.append(dataclasses.replace(member, graph=_with_references(graph, same)) if same else member)
    return linked_members


def _with_references(graph: ExecutionGraph, same: Mapping[str, str]) -> ExecutionGraph:
    """The graph with references in place of some variables."""
    variables = (
        reference_to(same[variable.id]) if variable.id in same else relinked(variable, same)
        for variable in graph.variables.values()
    )
    operations = (reconnected(operation, same) for operation in graph.operations.values())
    return ExecutionGraph(variables, operations, graph.sessions.values(), graph.attributes)


def relinked(variable: Variable, ids: Mapping[str, str]) -> Variable:
    """A variable whose last version and memory entry have these new ids, as far as they have one."""
    facts = variable.attributes
    if facts.get(ENTRY) in ids:
        facts = {**facts, ENTRY: ids[facts[ENTRY]]}
    previous = variable.previous if variable.previous is None else ids.get(variable.previous, variable.previous)
    return replace(variable, previous=previous, attributes=facts)


def reconnected(operation: Operation, ids: Mapping[str, str]) -> Operation:
    """An operation whose inputs and outputs have these new ids, as far as they have one."""
    return replace(
        operation,
        inputs=tuple((role, ids.get(vid, vid)) for role, vid in operation.inputs),
        outputs=tuple((role, ids.get(vid, vid)) for role, vid in operation.outputs),
    )
