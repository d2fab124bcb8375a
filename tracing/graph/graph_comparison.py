"""Where two executions begin to differ: the first operation that makes something else of the same inputs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from tracing.graph.elements import Link, Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.neighbours import operations_around, outer_operations

Parting = Literal["outputs", "inputs", "only in the first", "only in the second"]


@dataclass(frozen=True, slots=True)
class OperationDifference:
    """A pair of executions of one step that differ, or one that has no partner.

    Attributes:
        parting: "outputs" where the inputs are equal and the outputs or the error differ; "inputs" where the
            inputs differ already; else which graph alone has it.
        first, second: the operation in either graph; None where there is none.
        inputs, outputs: roles whose values differ.

    Example:
        >>> OperationDifference("only in the second", None, Operation("o1", "answer")).operation.name
        'answer'
    """

    parting: Parting
    first: Operation | None
    second: Operation | None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    @property
    def operation(self) -> Operation:
        """The operation, of the first graph where it is there."""
        operation = self.first or self.second
        assert operation is not None  # noqa: S101 (one of them is always given)
        return operation


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two graphs differ.

    Attributes:
        cause: the first difference that no earlier one explains; None where the graphs are equal.
        follows: differences that depend on the cause, in order.
        others: differences that do not, in order.
        aligned: how many operations have a partner.

    Example:
        >>> compare(ExecutionGraph(), ExecutionGraph())
        Comparison(cause=None, follows=(), others=(), aligned=0)
    """

    cause: OperationDifference | None
    follows: tuple[OperationDifference, ...]
    others: tuple[OperationDifference, ...]
    aligned: int

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return self.cause is None


def compare(first: ExecutionGraph, second: ExecutionGraph) -> Comparison:
    """Align the operations of two graphs and separate the first difference from what follows from it.

    Ids, times, tokens and costs are ignored. Executions are partners if their operation's name, their session's name
    and the names of the operations around them are the same: first those with equal inputs, in order, then the rest
    in order. Inputs and outputs are compared by role and value, in order.

    The cause is the first operation whose inputs are equal and whose outputs (or error) differ, the innermost where
    operations are nested. Where there is none, it is the first operation that only one graph has, or else the
    first whose inputs differ: then what came from outside was not the same. Linear in the size of the graphs.

    Example:
        >>> graphs = []
        >>> for city in ("Oslo", "Rome"):
        ...     with trace() as recorder:
        ...         reply = answered("Where does Mara live?", city)
        ...     graphs.append(recorder.graph)
        >>> compare(*graphs).cause.operation.name
        'answer'
    """
    sides = _Side(first), _Side(second)
    pairs = _aligned(sides)
    differences = [difference for pair in pairs if (difference := _difference(*pair, sides)) is not None]
    order = {oid: place for place, oid in enumerate(first.operations)}
    after = {oid: len(order) + place for place, oid in enumerate(second.operations)}
    differences.sort(
        key=lambda difference: order[difference.first.id] if difference.first else after[difference.operation.id]
    )
    cause = _cause(differences, sides[0])
    if cause is None:
        return Comparison(None, (), (), len(pairs))
    behind = _behind(cause, sides)
    rest = [difference for difference in differences if difference is not cause]
    return Comparison(
        cause,
        tuple(difference for difference in rest if difference.operation.id in behind[difference.first is None]),
        tuple(difference for difference in rest if difference.operation.id not in behind[difference.first is None]),
        sum(before is not None and right is not None for before, right in pairs),
    )


def version_diff(graph: ExecutionGraph, earlier: str, later: str) -> str:
    """What changed between the values of two variables, as a unified diff; empty where nothing did.

    Values that are no text are compared as indented JSON.

    Raises:
        TraceError: the graph has no such variable.

    Example:
        >>> with trace(prefix="") as recorder:
        ...     lima = variable("Lima", name="home")
        ...     oslo = variable("Oslo", name="home", previous=lima)
        >>> print(version_diff(recorder.graph, lima.id, oslo.id))
        --- home@1 (v1)
        +++ home@2 (v2)
        @@ -1 +1 @@
        -Lima
        +Oslo
    """
    versions = [graph.variable(earlier), graph.variable(later)]
    before, after = (f"{version.name}@{version.version} ({version.id})" for version in versions)
    return value_diff(versions[0].value, versions[1].value, before, after)


def value_diff(before: Any, after: Any, before_name: str, after_name: str) -> str:
    """A unified diff of two values under their names: of texts as they are, of others as indented JSON."""
    import difflib

    old, new = (
        (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)).splitlines()
        for value in (before, after)
    )
    return "\n".join(difflib.unified_diff(old, new, before_name, after_name, lineterm=""))


class _Side:
    """One of the graphs; a value is looked at once, however many operations read it."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self.graph = graph
        self._outer = outer_operations(graph.operations)
        self._digests: dict[int, bytes] = {}  # by object: a large value may be that of many variables

    def value(self, vid: str) -> bytes:
        """Equal where values are."""
        value = self.graph.variables[vid].value
        digest = self._digests.get(id(value))
        if digest is None:
            digest = self._digests[id(value)] = sha256(json.dumps(value, sort_keys=True).encode()).digest()
        return digest

    def around(self, oid: str) -> Iterator[str]:
        """The operations around one, from within to without."""
        return operations_around(self._outer, oid)

    def steps(self, numbers: dict[tuple[int, str], int]) -> Iterator[tuple[tuple[str, int], Operation]]:
        """Each operation with what its partner has too: the name of its session, and the number of its path.

        A path is the names of the operations around it and its own; `numbers` has the number of a path by that of the
        path around it and the last name.
        """
        operations, sessions = self.graph.operations, self.graph.sessions
        paths: dict[str, int] = {}
        for operation in operations.values():
            way = [operation.id]
            for outer in self.around(operation.id):
                if outer in paths:
                    break
                way.append(outer)
            for oid in reversed(way):
                last = paths.get(self._outer.get(oid, ""), 0), operations[oid].name
                paths[oid] = numbers.setdefault(last, len(numbers) + 1)
            session = sessions.get(operation.session or "")
            yield (session.name if session else "", paths[operation.id]), operation


_Sides = tuple[_Side, _Side]
_Content = tuple[tuple[str, bytes], ...]


def _aligned(sides: _Sides) -> list[tuple[Operation | None, Operation | None]]:
    groups: dict[tuple[str, int], tuple[list[Operation], list[Operation]]] = defaultdict(lambda: ([], []))
    numbers: dict[tuple[int, str], int] = {}
    for number, side in enumerate(sides):
        for step, operation in side.steps(numbers):
            groups[step][number].append(operation)
    pairs: list[tuple[Operation | None, Operation | None]] = []
    for before, after in groups.values():
        waiting: dict[_Content, list[Operation]] = defaultdict(list)
        for operation in reversed(after):
            waiting[_content(operation.inputs, sides[1])].append(operation)
        unpaired, paired = [], set()
        for operation in before:
            same = waiting[_content(operation.inputs, sides[0])]
            if same:
                partner = same.pop()
                paired.add(partner.id)
                pairs.append((operation, partner))
            else:
                unpaired.append(operation)
        others = [operation for operation in after if operation.id not in paired]
        pairs.extend(zip(unpaired, others, strict=False))
        pairs.extend((operation, None) for operation in unpaired[len(others) :])
        pairs.extend((None, operation) for operation in others[len(unpaired) :])
    return pairs


def _content(links: Iterable[Link], side: _Side) -> _Content:
    return tuple([(role, side.value(vid)) for role, vid in links])


def _difference(before: Operation | None, after: Operation | None, sides: _Sides) -> OperationDifference | None:
    if before is None or after is None:
        return OperationDifference("only in the second" if before is None else "only in the first", before, after)
    inputs, outputs = _roles(before.inputs, after.inputs, sides), _roles(before.outputs, after.outputs, sides)
    if inputs:
        return OperationDifference("inputs", before, after, inputs, outputs)
    if outputs or (before.status, before.error) != (after.status, after.error):
        return OperationDifference("outputs", before, after, (), outputs)
    return None


def _roles(before: Sequence[Link], after: Sequence[Link], sides: _Sides) -> tuple[str, ...]:
    values: dict[str, tuple[list[bytes], list[bytes]]] = {}
    for number, links in enumerate((before, after)):
        for role, vid in links:
            values.setdefault(role, ([], []))[number].append(sides[number].value(vid))
    return tuple(role for role, (first_values, second_values) in values.items() if first_values != second_values)


def _cause(differences: Sequence[OperationDifference], first: _Side) -> OperationDifference | None:
    changed = [difference for difference in differences if difference.parting == "outputs" and difference.first]
    around: set[str] = set()
    for difference in changed:
        for outer in first.around(difference.operation.id):
            if outer in around:
                break  # and so are those further out
            around.add(outer)
    for difference in changed:
        if difference.operation.id not in around:
            return difference
    for difference in differences:
        if difference.parting != "inputs":
            return difference
    return differences[0] if differences else None


def _behind(cause: OperationDifference, sides: _Sides) -> tuple[set[str], set[str]]:
    """Ids of the operations in either graph that the cause reaches, those around it included."""
    reached: tuple[set[str], set[str]] = (set(), set())
    for ids, operation, side in zip(reached, (cause.first, cause.second), sides, strict=True):
        if operation is not None:
            ids.update(side.around(operation.id))
            ids.update(side.graph.forward_slice(*operation.output_ids()).operations)
    return reached
