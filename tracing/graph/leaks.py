"""Entries of one user in the context of another, whatever was asked."""

from __future__ import annotations

from dataclasses import dataclass

from tracing.graph.elements import Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.identities import user_of


@dataclass(frozen=True, slots=True)
class Leak:
    """A piece of context that shows an entry of somebody else.

    Attributes:
        piece: what was given; entry: what it shows.
        owner: whose the entry is; reader: who was answered with it.
        operation: the name of the step that gave it, empty if none did.
    """

    piece: Variable
    entry: Variable
    owner: str
    reader: str
    operation: str

    def line(self) -> str:
        """The same in a sentence."""
        given = f"{self.operation} gave" if self.operation else "the context of"
        return f"leak: {given} {self.reader!r} the entry {self.entry.name} of {self.owner!r}"


def leaks_in(graph: ExecutionGraph) -> list[Leak]:
    """The leaks in a graph, in the order recorded; what names no user is nobody's.

    Example:
        >>> leaks_in(ExecutionGraph())
        []
    """
    leaks = []
    for piece in graph.find_variables(kind="context"):
        entry = graph.variables.get(str(piece.attributes.get("entry", "")))
        if entry is None:
            continue
        owner, reader = user_of(entry, graph), user_of(piece, graph)
        if owner and reader and owner != reader:
            makers = graph.producers(piece.id)
            leaks.append(Leak(piece, entry, owner, reader, makers[0].name if makers else ""))
    return leaks
