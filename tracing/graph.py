"""The execution graph: which operation read which variables and made which, over one or more recordings.

A bipartite directed graph. An operation is a hyperedge with ordered, named inputs and outputs, not a cross product of
edges; variables are immutable, and a new version of one names the version before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from tracing.elements import Link, Operation, Session, Status, Variable
from tracing.errors import TraceError

if TYPE_CHECKING:
    import networkx

__all__ = ["ExecutionGraph", "Link", "Operation", "Session", "Status", "Variable"]

_Reach = Callable[[str], Iterator[tuple[Operation | None, list[str]]]]


class ExecutionGraph:
    """Variables, the operations between them, and sessions, each by id in the order recorded.

    The cost of neighbours, versions and slices grows with what they visit, not with the graph. Queries may run while
    another thread records into the graph; they then see some state between the call's begin and end.

    Attributes:
        attributes: JSON-compatible facts about the whole graph, such as the file it was imported from.
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
        self._producers: dict[str, dict[str, None]] = {}
        self._consumers: dict[str, dict[str, None]] = {}
        self._next_versions: dict[str, list[str]] = {}
        self._variable_places: dict[str, int] = {}
        self._operation_places: dict[str, int] = {}
        self._nx: networkx.DiGraph | None = None
        for session in sessions:
            self.add_session(session)
        for variable in variables:
            self.add_variable(variable)
        for operation in operations:
            self.add_operation(operation)

    # --- growing ---------------------------------------------------------------------------------------------------

    def add_session(self, session: Session) -> None:
        """Add a session; adding an equal one again changes nothing.

        Raises:
            TraceError: another session has this id.
        """
        if self.sessions.setdefault(session.id, session) != session:
            raise _clash("session", session.id)

    def add_variable(self, variable: Variable) -> None:
        """Add a variable; adding an equal one again changes nothing.

        Raises:
            TraceError: another variable has this id.
        """
        known = self.variables.get(variable.id)
        if known is not None:
            if known is not variable and known != variable:
                raise _clash("variable", variable.id)
            return
        if variable.previous is not None:
            self._next_versions.setdefault(variable.previous, []).append(variable.id)
        self._variable_places[variable.id] = len(self.variables)
        self.variables[variable.id] = variable
        self._nx = None

    def add_operation(self, operation: Operation) -> None:
        """Add an operation, or complete one that is here as open or in part (from a slice).

        Raises:
            TraceError: another operation has this id, or it reads or made a variable that is not in the graph.
        """
        self._require_links(operation, operation.inputs, operation.outputs)
        known = self.operations.get(operation.id)
        if known is not None and known is not operation:
            operation = _joined(known, operation)
        self._operation_places.setdefault(operation.id, len(self.operations))
        self.operations[operation.id] = operation
        self._index(operation, operation.inputs, operation.outputs)

    def add_links(self, operation: Operation, inputs: tuple[Link, ...] = (), outputs: tuple[Link, ...] = ()) -> None:
        """Give an operation of this graph further inputs and outputs.

        Raises:
            TraceError: a link names a variable that is not in the graph.
        """
        self._require_links(operation, inputs, outputs)
        operation.inputs += inputs
        operation.outputs += outputs
        self._index(operation, inputs, outputs)

    def _require_links(self, operation: Operation, *links: tuple[Link, ...]) -> None:
        for role, variable in chain(*links):
            if variable not in self.variables:
                raise TraceError(
                    f"operation {operation.id} ({operation.name}) names the unknown variable {variable!r} as {role}; "
                    "add an operation after its variables"
                )

    def _index(self, operation: Operation, inputs: tuple[Link, ...], outputs: tuple[Link, ...]) -> None:
        for _, variable in inputs:
            self._consumers.setdefault(variable, {})[operation.id] = None
        for _, variable in outputs:
            self._producers.setdefault(variable, {})[operation.id] = None
        self._nx = None

    def merge(self, other: ExecutionGraph) -> ExecutionGraph:
        """A new graph of what is in either; what is in both must be the same, but this graph's attributes stand.

        Raises:
            TraceError: the graphs use one id for different things.
        """
        return ExecutionGraph(
            (*self.variables.values(), *other.variables.values()),
            (*self.operations.values(), *other.operations.values()),
            (*self.sessions.values(), *other.sessions.values()),
            {**other.attributes, **self.attributes},
        )

    # --- neighbours and versions -----------------------------------------------------------------------------------

    def producers(self, vid: str) -> list[Operation]:
        """Operations that made the variable, in the order recorded: none for what came from outside."""
        self._require(vid)
        return [self.operations[operation] for operation in list(self._producers.get(vid, ()))]

    def consumers(self, vid: str) -> list[Operation]:
        """Operations that read the variable, in the order recorded."""
        self._require(vid)
        return [self.operations[operation] for operation in list(self._consumers.get(vid, ()))]

    def versions(self, vid: str) -> list[Variable]:
        """Every version of the variable, oldest first, those of all branches included."""
        oldest, seen = self._require(vid), {vid}
        while oldest.previous in self.variables and oldest.previous not in seen:
            seen.add(oldest.previous)
            oldest = self.variables[oldest.previous]
        return self._onward(oldest)

    def latest(self, vid: str) -> Variable:
        """The newest version that descends from this one; itself if there is none."""
        return self._onward(self._require(vid))[-1]

    def _onward(self, start: Variable) -> list[Variable]:
        found = {start.id: start}
        queue = [start.id]
        for current in queue:
            for following in list(self._next_versions.get(current, ())):
                if following not in found:
                    found[following] = self.variables[following]
                    queue.append(following)
        return list(found.values())

    # --- slices ----------------------------------------------------------------------------------------------------

    def backward_slice(self, *vids: str) -> ExecutionGraph:
        """All that the variables were made from, themselves included: through operations and earlier versions.

        An operation of the slice keeps only the outputs that lie in it.
        """

        def sources(vid: str) -> Iterator[tuple[Operation | None, list[str]]]:
            for operation in self.producers(vid):
                yield operation, operation.input_ids()
            previous = self.variables[vid].previous
            if previous in self.variables:
                yield None, [previous]

        return self._slice(vids, sources)

    def forward_slice(self, *vids: str) -> ExecutionGraph:
        """All that was made from the variables, themselves included: through operations and later versions.

        An operation of the slice keeps only the inputs that lie in it.
        """

        def results(vid: str) -> Iterator[tuple[Operation | None, list[str]]]:
            for operation in self.consumers(vid):
                yield operation, operation.output_ids()
            yield None, list(self._next_versions.get(vid, ()))

        return self._slice(vids, results)

    def _slice(self, vids: Iterable[str], reach: _Reach) -> ExecutionGraph:
        variables = dict.fromkeys(vids)
        operations: dict[str, None] = {}
        queue = list(variables)
        for vid in queue:
            self._require(vid)
            for operation, reached in reach(vid):
                if operation is not None:
                    if operation.id in operations:
                        continue
                    operations[operation.id] = None
                for other in reached:
                    if other not in variables:
                        variables[other] = None
                        queue.append(other)
        members = [self.variables[vid] for vid in sorted(variables, key=self._variable_places.__getitem__)]
        kept = []
        for oid in sorted(operations, key=self._operation_places.__getitem__):
            whole = self.operations[oid]
            inputs = tuple(link for link in whole.inputs if link[1] in variables)
            outputs = tuple(link for link in whole.outputs if link[1] in variables)
            kept.append(replace(whole, inputs=inputs, outputs=outputs))
        used = dict.fromkeys([one.session for one in members] + [one.session for one in kept])
        return ExecutionGraph(
            members, kept, [self.sessions[sid] for sid in used if sid in self.sessions], self.attributes
        )

    # --- search ----------------------------------------------------------------------------------------------------

    def find_operations(
        self, name: str | None = None, session: str | None = None, kind: str | None = None
    ) -> list[Operation]:
        """Operations with this name, kind and session (its name or id), in the order recorded; None matches all."""
        return [
            operation
            for operation in list(self.operations.values())
            if (name is None or operation.name == name)
            and (kind is None or operation.kind == kind)
            and (session is None or self._in_session(operation.session, session))
        ]

    def find_variables(
        self, kind: str | None = None, name: str | None = None, session: str | None = None
    ) -> list[Variable]:
        """Variables of this kind, name and session (its name or id), in the order recorded; None matches all."""
        return [
            variable
            for variable in list(self.variables.values())
            if (kind is None or variable.kind == kind)
            and (name is None or variable.name == name)
            and (session is None or self._in_session(variable.session, session))
        ]

    def _in_session(self, sid: str | None, wanted: str) -> bool:
        return sid is not None and (sid == wanted or (sid in self.sessions and self.sessions[sid].name == wanted))

    # --- networkx --------------------------------------------------------------------------------------------------

    @property
    def nx(self) -> networkx.DiGraph:
        """The bipartite graph for networkx: edges variable → operation → variable with the tuple `roles`.

        Nodes are ids with `type` ("variable" or "operation"), `name`, `kind` and `session`; variables also `version`
        and `previous` (lineage is no edge, so the graph stays bipartite). Built once until the graph grows.
        """
        if self._nx is None:
            import networkx

            built = networkx.DiGraph()
            for variable in list(self.variables.values()):
                built.add_node(
                    variable.id,
                    type="variable",
                    name=variable.name,
                    kind=variable.kind,
                    session=variable.session,
                    version=variable.version,
                    previous=variable.previous,
                )
            for operation in list(self.operations.values()):
                oid = operation.id
                built.add_node(
                    oid, type="operation", name=operation.name, kind=operation.kind, session=operation.session
                )
                for links, inward in ((operation.inputs, True), (operation.outputs, False)):
                    for role, vid in links:
                        edge = (vid, oid) if inward else (oid, vid)
                        roles = built.edges[edge]["roles"] if built.has_edge(*edge) else ()
                        built.add_edge(*edge, roles=(*roles, role))
            self._nx = built
        return self._nx

    def _require(self, vid: str) -> Variable:
        try:
            return self.variables[vid]
        except KeyError:
            raise TraceError(f"the graph has no variable {vid!r}; take ids from this graph's `variables`") from None


def _joined(known: Operation, other: Operation) -> Operation:
    """One operation from two sights of it: an open one is completed, slices of it are united."""
    if known.status == "open" or other.status == "open":
        return other if known.status == "open" else known
    larger, smaller = sorted((known, other), key=lambda one: len(one.inputs) + len(one.outputs), reverse=True)
    united = replace(
        larger,
        inputs=larger.inputs + tuple(link for link in smaller.inputs if link not in larger.inputs),
        outputs=larger.outputs + tuple(link for link in smaller.outputs if link not in larger.outputs),
    )
    if replace(smaller, inputs=united.inputs, outputs=united.outputs) != united:
        raise _clash("operation", known.id)
    return united


def _clash(what: str, key: str) -> TraceError:
    return TraceError(
        f"two different {what}s have the id {key!r}; record them with different prefixes: trace(prefix=…)"
    )
