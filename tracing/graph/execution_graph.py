"""The execution graph: which operation read which variables and made which, over one or more recordings.

A bipartite directed graph. An operation is a hyperedge with ordered, named inputs and outputs, not a cross product of
edges; variables are immutable, and a new version of one names the version before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tracing.errors import TraceError
from tracing.graph.elements import Link, Operation, Session, Status, Variable, joined, stands_for
from tracing.graph.neighbours import Admits, Neighbours
from tracing.graph.operation_filter import Filter, in_session

if TYPE_CHECKING:
    import networkx

__all__ = ["ExecutionGraph", "Link", "Operation", "Session", "Status", "Variable"]


_id, _session = attrgetter("id"), attrgetter("session")


class ExecutionGraph:
    """Variables, the operations between them, and sessions, each by id in the order recorded.

    The cost of neighbours, versions and slices grows with what they visit, not with the graph; the first such query
    indexes what came since the last one. Queries may run while another thread records into the graph; they then see
    some state between the call's begin and end.

    Attributes:
        variables, operations, sessions: by id. Read them; what is to be added goes through the methods.
        attributes: JSON-compatible facts about the whole graph, such as the file it was imported from.
        neighbours: the index behind the queries.

    Example:
        >>> with trace() as recorder:
        ...     message = variable("Mara: I moved to Oslo.", name="D1:1", kind="message")
        ...     with operation("extract_facts", inputs={"messages": [message]}) as op:
        ...         fact = op.output("facts", "Mara lives in Oslo.", kind="fact")
        >>> graph = recorder.graph
        >>> [step.name for step in graph.producers(fact.id)]
        ['extract_facts']
        >>> [item.name for item in graph.shortest_path(message.id, fact.id)]
        ['D1:1', 'extract_facts', 'facts']
    """

    def __init__(
        self,
        variables: Iterable[Variable] = (),
        operations: Iterable[Operation] = (),
        sessions: Iterable[Session] = (),
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self.attributes: dict[str, Any] = dict(attributes or {})
        self.variables: dict[str, Variable] = {}
        self.operations: dict[str, Operation] = {}
        self.sessions: dict[str, Session] = {}
        self.neighbours = Neighbours()
        self._nx: networkx.DiGraph | None = None
        for session in sessions:
            self.add_session(session)
        for variable in variables:
            self.add_variable(variable)
        for operation in operations:
            self.add_operation(operation)

    def add_session(self, session: Session) -> None:
        """Add a session; adding an equal one again changes nothing.

        Raises:
            TraceError: another session has this id.
        """
        if self.sessions.setdefault(session.id, session) != session:
            raise _clash("session", session.id)

    def add_variable(self, variable: Variable) -> None:
        """Add a variable, or what a reference to it stood for; adding an equal one, or a reference, changes nothing.

        Raises:
            TraceError: another variable has this id.
        """
        present = self.variables.get(variable.id)
        if present is None:
            self.admit_variable(variable)
        elif present is variable or present == variable or stands_for(variable, present):
            return
        elif stands_for(present, variable):
            self.neighbours.resolve(variable)
            self.variables[variable.id] = variable
            self._nx = None
        else:
            raise _clash("variable", variable.id)

    def admit_variable(self, variable: Variable) -> None:
        """As `add_variable`, of one that is known to be new: its recorder made its id."""
        self.neighbours.note(variable)
        self.variables[variable.id] = variable
        self._nx = None

    def admit_variables(self, variables: Iterable[Variable]) -> None:
        """As `admit_variable`, of many; each is in the graph when the next is asked for."""
        graph_variables, note = self.variables, self.neighbours.note
        for variable in variables:
            note(variable)
            graph_variables[variable.id] = variable
        self._nx = None

    def add_operation(self, operation: Operation) -> None:
        """Add an operation, or complete one that is here as open or in part (from a slice).

        Raises:
            TraceError: another operation has this id, or it reads or made a variable that is not in the graph.
        """
        self._require_links(operation, operation.inputs, operation.outputs)
        present = self.operations.get(operation.id)
        if present is not None and present is not operation:
            united = joined(present, operation)
            if united is None:
                raise _clash("operation", present.id)
            operation = united
        self.admit_operation(operation)

    def admit_operation(self, operation: Operation) -> None:
        """As `add_operation`, of one that is known to be new and to have links to variables of this graph alone."""
        self.neighbours.note(operation)
        self.operations[operation.id] = operation
        self._nx = None

    def add_links(self, operation: Operation, inputs: tuple[Link, ...] = (), outputs: tuple[Link, ...] = ()) -> None:
        """Give an operation of this graph further inputs and outputs.

        Raises:
            TraceError: a link names a variable that is not in the graph.
        """
        self._require_links(operation, inputs, outputs)
        self.admit_links(operation, inputs, outputs)

    def admit_links(self, operation: Operation, inputs: tuple[Link, ...] = (), outputs: tuple[Link, ...] = ()) -> None:
        """As `add_links`, of links that are known to lead to variables of this graph."""
        operation.inputs += inputs
        operation.outputs += outputs
        self.neighbours.note(operation)
        self._nx = None

    def _require_links(self, operation: Operation, *links: tuple[Link, ...]) -> None:
        for role, variable in chain(*links):
            if variable not in self.variables:
                raise TraceError(
                    f"operation {operation.id} ({operation.name}) names the unknown variable {variable!r} as {role}; "
                    "add an operation after its variables"
                )

    def variable(self, vid: str) -> Variable:
        """The variable with this id.

        Raises:
            TraceError: the graph has no such variable.
        """
        try:
            return self.variables[vid]
        except KeyError:
            raise TraceError(f"the graph has no variable {vid!r}; take ids from this graph's `variables`") from None

    def operation(self, oid: str) -> Operation:
        """The operation with this id.

        Raises:
            TraceError: the graph has no such operation.
        """
        try:
            return self.operations[oid]
        except KeyError:
            raise TraceError(f"the graph has no operation {oid!r}; take ids from this graph's `operations`") from None

    # --- sets ------------------------------------------------------------------------------------------------------

    def merge(self, other: ExecutionGraph) -> ExecutionGraph:
        """A new graph of what is in either; what is in both must be the same, but this graph's attributes win.

        Raises:
            TraceError: the graphs use one id for different things.
        """
        return ExecutionGraph(
            (*self.variables.values(), *other.variables.values()),
            (*self.operations.values(), *other.operations.values()),
            (*self.sessions.values(), *other.sessions.values()),
            {**other.attributes, **self.attributes},
        )

    def intersection(self, other: ExecutionGraph) -> ExecutionGraph:
        """A new graph of what is in both; what has the same id must be the same. Sets go by id, not by equal value.

        Raises:
            TraceError: the graphs use one id for different things.
        """
        self.merge(other)  # raises where one id is used for two things
        near = self.neighbours.caught_up()
        return self._part(
            {place for place, variable in enumerate(near.variables) if variable.id in other.variables},
            {place for place, operation in enumerate(near.operations) if operation.id in other.operations},
        )

    def difference(self, other: ExecutionGraph) -> ExecutionGraph:
        """A new graph of what is here and, by its id, not in `other`, with the variables that its operations need."""
        near = self.neighbours.caught_up()
        operations = {place for place, operation in enumerate(near.operations) if operation.id not in other.operations}
        variables = {place for place, variable in enumerate(near.variables) if variable.id not in other.variables}
        for place in operations:
            variables.update(near.reads[place], near.makes[place])
        return self._part(variables, operations)

    # --- neighbours and versions -----------------------------------------------------------------------------------

    def producers(self, vid: str) -> list[Operation]:
        """Operations that made the variable, in the order recorded: none for what came from outside."""
        self.variable(vid)
        return self._here(self.neighbours.producers(vid))

    def consumers(self, vid: str) -> list[Operation]:
        """Operations that read the variable, in the order recorded."""
        self.variable(vid)
        return self._here(self.neighbours.consumers(vid))

    def _here(self, operations: Iterable[Operation]) -> list[Operation]:
        """Those that this graph has, as it has them."""
        return [self.operations[operation.id] for operation in operations if operation.id in self.operations]

    def versions(self, vid: str) -> list[Variable]:
        """Every version of the variable, oldest first, those of all branches included."""
        oldest, ids = self.variable(vid), {vid}
        while oldest.previous in self.variables and oldest.previous not in ids:
            ids.add(oldest.previous)
            oldest = self.variables[oldest.previous]
        return self._onward(oldest)

    def latest(self, vid: str) -> Variable:
        """The newest version that descends from this one; itself if there is none."""
        return self._onward(self.variable(vid))[-1]

    def _onward(self, start: Variable) -> list[Variable]:
        near = self.neighbours.at_hand()
        queue = [near.variable_places[start.id]]
        reached = set(queue)
        for place in queue:
            for following in near.later.get(place, ()):
                if following not in reached and near.variables[following].id in self.variables:
                    reached.add(following)
                    queue.append(following)
        return [near.variables[place] for place in queue]

    # --- slices and paths ------------------------------------------------------------------------------------------

    def backward_slice(self, *vids: str, only: Filter | None = None, depth: int | None = None) -> ExecutionGraph:
        """All that the variables were made from, themselves included: through operations and earlier versions.

        An operation of the slice keeps only the outputs that lie in it.

        Args:
            vids: ids of the variables to start from.
            only: what the slice may go through; what lies behind an operation that is not admitted is not followed.
            depth: how many steps to go at most; an operation is a step, and so is a version.

        Raises:
            TraceError: the graph has no such variable.
        """
        for vid in vids:
            self.variable(vid)
        return self._part(*self.neighbours.backward(vids, self._admitting(only), depth))

    def forward_slice(self, *vids: str, only: Filter | None = None, depth: int | None = None) -> ExecutionGraph:
        """All that was made from the variables, themselves included: through operations and later versions.

        An operation of the slice keeps only the inputs that lie in it. Arguments and errors are `backward_slice`'s.
        """
        for vid in vids:
            self.variable(vid)
        return self._part(*self.neighbours.forward(vids, self._admitting(only), depth))

    def shortest_path(self, source: str, target: str, *, only: Filter | None = None) -> list[Variable | Operation]:
        """The fewest steps by which `target` came from `source`: variables, with the operations between them.

        Where one version follows another, there is no operation between. Empty if `target` does not depend on it.

        Raises:
            TraceError: the graph has no such variable.
        """
        self.variable(source)
        self.variable(target)
        return self.neighbours.shortest_path(source, target, self._admitting(only))

    def surroundings(self, oid: str) -> ExecutionGraph:
        """An operation, those nested in it, their inputs and outputs, and which operations these come from and go to.

        The neighbouring operations keep only the links that lie in it. Reads through all operations once.

        Raises:
            TraceError: the graph has no such operation.
        """
        self.operation(oid)
        return self._part(*self.neighbours.surroundings(oid))

    def until(self, oid: str) -> ExecutionGraph:
        """The graph as it was when an operation ended: what was recorded before it or led to it, and its outputs.

        Operations that it ran inside, or that outlasted it, keep only what was recorded before its outputs.

        Raises:
            TraceError: the graph has no such operation.
        """
        self.operation(oid)
        return self._part(*self.neighbours.until(oid), of_whole=True)

    def _admitting(self, only: Filter | None) -> Admits | None:
        return None if only is None else lambda operation: only.admits(operation, self.sessions)

    def _part(self, variables: set[int], operations: set[int], *, of_whole: bool = False) -> ExecutionGraph:
        """A graph of some variables and operations of this one, and of their sessions; links elsewhere are cut.

        It may share this graph's index, and then keeps it in memory.
        """
        part = ExecutionGraph(attributes=self.attributes)
        near = self.neighbours
        part_variables = list(map(near.variables.__getitem__, sorted(variables)))
        cut = near.cut(sorted(operations), variables)
        part.variables = dict(zip(map(_id, part_variables), part_variables, strict=True))
        part.operations = dict(zip(map(_id, cut), cut, strict=True))
        used = dict.fromkeys(map(_session, chain(part_variables, cut)))
        part.sessions = {sid: self.sessions[sid] for sid in used if sid is not None and sid in self.sessions}
        part.neighbours.note_all(part_variables, cut, near if of_whole else None)
        return part

    # --- search ----------------------------------------------------------------------------------------------------

    def find_operations(
        self, name: str | None = None, session: str | None = None, kind: str | None = None
    ) -> list[Operation]:
        """Operations with this name, kind and session (its name or id), in the order recorded; None matches all."""
        only = Filter(name, kind, session)
        return [operation for operation in list(self.operations.values()) if only.admits(operation, self.sessions)]

    def find_variables(
        self, kind: str | None = None, name: str | None = None, session: str | None = None
    ) -> list[Variable]:
        """Variables of this kind, name and session (its name or id), in the order recorded; None matches all."""
        return [
            variable
            for variable in list(self.variables.values())
            if (kind is None or variable.kind == kind)
            and (name is None or variable.name == name)
            and (session is None or in_session(variable.session, session, self.sessions))
        ]

    # --- networkx --------------------------------------------------------------------------------------------------

    @property
    def nx(self) -> networkx.DiGraph:
        """The bipartite graph for networkx: edges variable → operation → variable with the tuple `roles`.

        Nodes are ids with `type` ("variable" or "operation"), `name`, `kind` and `session`; variables also `version`
        and `previous` (lineage is no edge, so the graph stays bipartite). Built once until the graph grows.
        """
        if self._nx is None:
            self._nx = _digraph(self)
        return self._nx


def _digraph(graph: ExecutionGraph) -> networkx.DiGraph:
    """The graph with edges variable → operation → variable, as `ExecutionGraph.nx` describes it."""
    import networkx

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


def _clash(what: str, key: str) -> TraceError:
    return TraceError(
        f"two different {what}s have the id {key!r}; record each trace with a prefix of its own: trace() draws one"
    )
