"""Traces that are one history: a memory was written in one and read in another, and a wrong answer needs both."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from heapq import merge
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

from msgspec.structs import replace

from tracing.errors import TraceError, in_one_line
from tracing.files.opening import read_file
from tracing.graph.elements import REFERENCE, Operation, Variable, reference_to
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.identities import OWN_USERS, USERS, graphs_by_user
from tracing.interchange import read_graph
from tracing.interchange.agent_memory import interpreted, is_interpreted

Read = Callable[[Path], tuple[ExecutionGraph, str | None]]
"""The graph of a file, and what is wrong with the file: as it was recorded, or of the memory that it shows."""
ENTRY = "entry"
"""Attribute of a piece of context: id of the entry that it shows."""
_KEY = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_MOST_KEPT = 1000
"""Graphs of traces in memory, those looked at last."""
_KEYED = re.compile(_KEY)
_LINKED = re.compile(
    rf'"{REFERENCE}"|"name":"[^"]*{_KEY}[^"]*","kind":"memory_entry"'
    rf'|"(?:{"|".join(OWN_USERS)})":|"(?:{"|".join(map(re.escape, USERS))})"'.encode()
)


@dataclass(slots=True, eq=False)
class _Part:
    """What a trace has of one user, or all of it; its graph is read again where it is needed.

    `same` has the ids that other traces gave the entries that it has only read.
    """

    path: Path
    user: str
    began: float
    ended: float
    answers: bool
    ids: frozenset[str]
    references: frozenset[str]
    same: Mapping[str, str] = field(default_factory=dict)


class Histories:
    """Which of the given traces belong together: those of one user, and those linked by references.

    The user is what `tracing.attributes` or a span says. A trace of several users is a part of the history of each.

    A library keeps no id of ours with its entries, but a key of its own. So an entry that a trace has only read is the
    one that an earlier trace wrote under the same name with the same text, if that name holds a UUID.

    Where all links make one history, traces without a user, an answer and a link (nothing was stored of them) belong
    to it. Where there are several, nothing tells whose these are.
    """

    def __init__(self, paths: Iterable[Path], *, all_of_interest: bool = False, read: Read = read_graph) -> None:
        self._paths, self._all_of_interest, self._read = [*paths], all_of_interest, read
        self._damaged: dict[Path, str] = {}
        self._lenders: dict[str, _Part] = {}
        self._graph = lru_cache(_MOST_KEPT)(lambda part: _graph_of(part, read(part.path)[0]))

    @property
    def damaged(self) -> Mapping[Path, str]:
        """What is wrong with those that were looked at for what belongs to others."""
        return self._damaged if self._parts else {}

    def before(self, path: Path) -> list[Path]:
        """The other traces of this one's histories that began before it ended, the oldest first."""
        return list(dict.fromkeys(part.path for part in self._earlier(self._parts.get(path, ()))))

    def whole(self, path: Path, graph: ExecutionGraph, user: str | None = None) -> ExecutionGraph:
        """One graph of a trace, which is `graph` alone, and of those before it; or of what is a user's in both.

        What was read of another user's memory comes with what it was made from.

        Raises:
            TraceError: two traces use one id for different things.
        """
        parts = [part for part in self._parts.get(path, ()) if user in (None, part.user)]
        earlier = self._earlier(parts)
        graphs = [(part.path.stem, self._graph(part)) for part in earlier]
        for vid in sorted({vid for part in (*parts, *earlier) for vid in part.references} & self._lenders.keys()):
            lender = self._lenders[vid]
            graphs.insert(0, (lender.path.stem, self._graph(lender).backward_slice(vid)))
        same = {vid: entry for part in parts for vid, entry in part.same.items()}
        history = one_history(_with_references(graph, same), graphs)
        if not earlier or not any(map(is_interpreted, (graph, *(other for _, other in graphs)))):
            return history
        # What a trace changed another one stored: only all calls together tell the versions of an agent's entries.
        before = [(other.stem, read_graph(other)[0]) for other in dict.fromkeys(part.path for part in earlier)]
        memory = interpreted(one_history(read_graph(path)[0], before))
        return memory if user is None else graphs_by_user(memory).get(user, memory)

    def all(self) -> Iterator[tuple[str, dict[Path, ExecutionGraph]]]:
        """Every history: its user, if several need to be told apart, and what each trace has of it, the oldest first.

        Where not all traces are of interest, those without a link may be missing.
        """
        groups = {id(group): group for group in self._histories.values()}
        for group in sorted(groups.values(), key=lambda group: group[0].began):
            several = len(group) > 1 or len(self._parts[group[0].path]) > 1
            user = next((part.user for part in group if part.user), "") if several else ""
            yield user, {part.path: self._graph(part) for part in group}

    def _earlier(self, parts: Iterable[_Part]) -> list[_Part]:
        """What the histories of some parts have in other traces that began before these parts ended."""
        earlier = {
            (part.path, part.user): part
            for own in parts
            for part in self._histories[own.path, own.user]
            if part.path != own.path and part.began <= own.ended
        }
        return sorted(earlier.values(), key=lambda part: part.began)

    @cached_property
    def _parts(self) -> dict[Path, list[_Part]]:
        if not self._all_of_interest and not any(map(_may_be_linked, self._paths)):
            return {}  # of many traces without links, none is read twice
        written: dict[Path, list[tuple[_Part, dict[_Entry, str], dict[str, _Entry]]]] = {}
        for path in self._paths:
            try:
                graph, problem = self._read(path)
            except TraceError as error:
                self._damaged[path] = in_one_line(error)
                continue
            if problem is not None:
                self._damaged[path] = problem
            written[path] = [(_part(path, user, own), *_entries(own)) for user, own in graphs_by_user(graph).items()]
        latest: dict[_Entry, str] = {}
        rows = (row for rows in written.values() for row in rows)
        for part, wrote, read in sorted(rows, key=lambda row: row[0].began):
            part.same = {vid: latest[entry] for vid, entry in read.items() if entry in latest}
            part.references |= frozenset(part.same.values())
            latest |= wrote
        return {path: [part for part, _, _ in rows] for path, rows in written.items()}

    @cached_property
    def _histories(self) -> dict[tuple[Path, str], list[_Part]]:
        import networkx

        parts = sorted((part for parts in self._parts.values() for part in parts), key=lambda part: part.began)
        holders: defaultdict[str, list[int]] = defaultdict(list)
        for place, part in enumerate(parts):
            for vid in part.ids:
                holders[vid].append(place)
        of_user = {part.user: place for place, part in enumerate(parts)}
        links = networkx.Graph()
        links.add_nodes_from(range(len(parts)))
        for place, part in enumerate(parts):
            for vid in part.references & holders.keys():
                own = [other for other in holders[vid] if len({part.user, parts[other].user} - {""}) < 2]
                links.add_edges_from((place, other) for other in own)
                if not own:  # what is read of another user, as in a memory that all share, does not make one of both
                    self._lenders[vid] = parts[holders[vid][0]]
            if part.user:
                links.add_edge(place, of_user[part.user])
        groups = [[parts[place] for place in sorted(group)] for group in networkx.connected_components(links)]
        linked = [group for group in groups if len(group) > 1 or group[0].user]
        if len(linked) == 1:
            linked[0] += [group[0] for group in groups if group is not linked[0] and not group[0].answers]
            linked[0].sort(key=lambda part: part.began)
        return {(part.path, part.user): group for group in (*groups, *linked) for part in group}


def _graph_of(part: _Part, graph: ExecutionGraph) -> ExecutionGraph:
    return _with_references(graphs_by_user(graph).get(part.user, graph), part.same)


def references_in(graph: ExecutionGraph) -> list[Variable]:
    """The variables of a graph that stand for those of other traces."""
    return [variable for variable in graph.variables.values() if variable.is_reference]


def one_history(own: ExecutionGraph, before: Sequence[tuple[str, ExecutionGraph]]) -> ExecutionGraph:
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
    ordered = merge(*(_timed_variables(graph) for graph in graphs), key=itemgetter(0))
    variables = (
        replace(variable, name=renamed[variable.id]) if variable.id in renamed else variable for _, variable in ordered
    )
    history = ExecutionGraph(
        variables,
        (operation for _, operation in merge(*map(_timed_operations, graphs), key=itemgetter(0))),
        (session for graph in graphs for session in graph.sessions.values()),
        {key: value for graph in graphs for key, value in graph.attributes.items()},
    )
    return ExecutionGraph(
        _with_versions(history.variables.values()),
        history.operations.values(),
        history.sessions.values(),
        history.attributes,
    )


def _timed_operations(graph: ExecutionGraph) -> Iterable[tuple[float, Operation]]:
    """The operations of a trace with their times, in the order recorded, for which times never go back."""
    times = accumulate((operation.started for operation in graph.operations.values()), max)
    return zip(times, graph.operations.values(), strict=True)


def _timed_variables(graph: ExecutionGraph) -> Iterable[tuple[float, Variable]]:
    """As `_timed_operations`: the time of a variable is that of the first operation that made or read it."""
    first_times: dict[str, float] = {}
    for time, operation in _timed_operations(graph):
        for _, vid in (*operation.inputs, *operation.outputs):
            first_times.setdefault(vid, time)
    began = next(iter(first_times.values()), 0.0)
    times = accumulate((first_times.get(vid, began) for vid in graph.variables), max)
    return zip(times, graph.variables.values(), strict=True)


def _with_versions(variables: Iterable[Variable]) -> Iterable[Variable]:
    counts: dict[str, int] = {}
    for variable in variables:
        version = max(counts.get(variable.previous or "", 0) + 1, variable.version)
        counts[variable.id] = version
        yield variable if version == variable.version else replace(variable, version=version)


def _part(path: Path, user: str, graph: ExecutionGraph) -> _Part:
    times = [
        time
        for operation in graph.operations.values()
        for time in (operation.started, operation.ended or operation.started)
    ]
    answers = any(variable.kind == "prediction" for variable in graph.variables.values())
    references = frozenset(variable.id for variable in references_in(graph))
    ids = graph.variables.keys() - references
    return _Part(path, user, min(times, default=0.0), max(times, default=math.inf), answers, frozenset(ids), references)


def _may_be_linked(path: Path) -> bool:
    try:
        return _LINKED.search(read_file(path)) is not None
    except OSError:
        return False


_Entry = tuple[str, str]
"""Name and text of an entry."""


def _entries(graph: ExecutionGraph) -> tuple[dict[_Entry, str], dict[str, _Entry]]:
    """The entries with keys that a trace wrote, with their ids, and by their ids those that it has only read."""
    keyed = (entry for entry in graph.find_variables(kind="memory_entry") if _KEYED.search(entry.name))
    entries = [(entry, (entry.name, json.dumps(entry.value, sort_keys=True))) for entry in keyed]
    wrote = {key: entry.id for entry, key in entries if graph.producers(entry.id)}
    return wrote, {entry.id: key for entry, key in entries if not graph.producers(entry.id)}


def _with_references(graph: ExecutionGraph, same: Mapping[str, str]) -> ExecutionGraph:
    """The graph with references in place of some variables."""
    if not same:
        return graph
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
