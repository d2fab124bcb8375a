"""What an execution graph holds, and how it grows; `ExecutionGraph` adds the queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tracing.errors import TraceError
from tracing.graph.elements import Link, Operation, Session, Variable
from tracing.graph.neighbours import Neighbours

if TYPE_CHECKING:
    import networkx


class GraphContents:
    """Variables, the operations between them, and sessions, each by id in the order recorded.

    Attributes:
        variables, operations, sessions: by id. Read them; what is to be added goes through the methods.
        attributes: JSON-compatible facts about the whole graph, such as the file it was imported from.
        neighbours: the index behind the queries.
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
        elif present is variable or present == variable or _stands_for(variable, present):
            return
        elif _stands_for(present, variable):
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
            operation = _joined(present, operation)
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


def _stands_for(variable: Variable, whole: Variable) -> bool:
    """Whether it is a reference to the other, or what another trace took over of it: all but its place there."""
    previous = None if variable.previous is None else whole.previous
    session = None if variable.session is None else whole.session
    return variable.is_reference or variable == replace(whole, previous=previous, session=session)


def _joined(present: Operation, other: Operation) -> Operation:
    """One operation from two sights of it: an open one is completed, slices of it are united."""
    if present.status == "open" or other.status == "open":
        return other if present.status == "open" else present
    larger, smaller = sorted(
        (present, other), key=lambda operation: len(operation.inputs) + len(operation.outputs), reverse=True
    )
    inputs, outputs = set(larger.inputs), set(larger.outputs)
    united = replace(
        larger,
        inputs=larger.inputs + tuple(link for link in smaller.inputs if link not in inputs),
        outputs=larger.outputs + tuple(link for link in smaller.outputs if link not in outputs),
    )
    if replace(smaller, inputs=united.inputs, outputs=united.outputs) != united:
        raise _clash("operation", present.id)
    return united


def _clash(what: str, key: str) -> TraceError:
    return TraceError(
        f"two different {what}s have the id {key!r}; record each trace with a prefix of its own: trace() draws one"
    )


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
