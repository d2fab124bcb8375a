"""Where two executions part: the first operation that makes something else of the same inputs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tracing.elements import Link, Operation
from tracing.graph import ExecutionGraph

Parting = Literal["outputs", "inputs", "only in the first", "only in the second"]


@dataclass(frozen=True, slots=True)
class OperationDifference:
    """A pair of executions of one step that differ, or one that has no partner.

    Attributes:
        parting: "outputs" where the inputs are equal and the outputs or the error differ; "inputs" where the
            inputs differ already; else which graph alone has it.
        first, second: the operation in either graph; None where there is none.
        inputs, outputs: roles whose values differ.
    """

    parting: Parting
    first: Operation | None
    second: Operation | None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    @property
    def operation(self) -> Operation:
        """The operation, of the first graph where it is there."""
        found = self.first or self.second
        assert found is not None  # noqa: S101 (one of them is always given)
        return found


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two graphs differ.

    Attributes:
        cause: the first difference that no earlier one explains; None where the graphs are equal.
        follows: differences that depend on the cause, in order.
        others: differences that do not, in order.
        aligned: how many operations have a partner.
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
    """Align the operations of two graphs and tell the first difference from what follows from it.

    Ids, times, tokens and costs are ignored. Executions are partners if their operation's name, their session's name
    and the names of the operations around them are the same: first those with equal inputs, in order, then the rest
    in order. Inputs and outputs are compared by role and value, in order.

    The cause is the first operation whose inputs are equal and whose outputs (or error) differ, the innermost where
    operations are nested. Where there is none, it is the first operation that only one graph has, or else the
    first whose inputs differ: then what came from outside was not the same. Linear in the size of the graphs.
    """
    pairs = _aligned(first, second)
    found = [difference for pair in pairs if (difference := _difference(*pair, first, second)) is not None]
    order = {oid: place for place, oid in enumerate(first.operations)}
    after = {oid: len(order) + place for place, oid in enumerate(second.operations)}
    found.sort(key=lambda one: order[one.first.id] if one.first else after[one.operation.id])
    cause = _cause(found, first)
    if cause is None:
        return Comparison(None, (), (), len(pairs))
    behind = _behind(cause, first, second)
    rest = [one for one in found if one is not cause]
    return Comparison(
        cause,
        tuple(one for one in rest if one.operation.id in behind[one.first is None]),
        tuple(one for one in rest if one.operation.id not in behind[one.first is None]),
        sum(left is not None and right is not None for left, right in pairs),
    )


def version_diff(graph: ExecutionGraph, earlier: str, later: str) -> str:
    """What changed between the values of two variables, as a unified diff; empty where nothing did.

    Values that are no text are compared as indented JSON.

    Raises:
        TraceError: the graph has no such variable.
    """
    versions = [graph.variable(earlier), graph.variable(later)]
    before, after = (f"{one.name}@{one.version} ({one.id})" for one in versions)
    return value_diff(versions[0].value, versions[1].value, before, after)


def value_diff(before: Any, after: Any, before_name: str, after_name: str) -> str:
    """A unified diff of two values under their names: of texts as they are, of others as indented JSON."""
    import difflib

    old, new = (
        (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False, indent=2)).splitlines()
        for one in (before, after)
    )
    return "\n".join(difflib.unified_diff(old, new, before_name, after_name, lineterm=""))


def _aligned(first: ExecutionGraph, second: ExecutionGraph) -> list[tuple[Operation | None, Operation | None]]:
    groups: dict[tuple[str, ...], tuple[list[Operation], list[Operation]]] = defaultdict(lambda: ([], []))
    for side, graph in enumerate((first, second)):
        for operation in graph.operations.values():
            groups[_path(operation, graph)][side].append(operation)
    pairs: list[tuple[Operation | None, Operation | None]] = []
    for left, right in groups.values():
        waiting: dict[str, list[Operation]] = defaultdict(list)
        for operation in reversed(right):
            waiting[_content(operation.inputs, second)].append(operation)
        unpaired, taken = [], set()
        for operation in left:
            same = waiting[_content(operation.inputs, first)]
            if same:
                partner = same.pop()
                taken.add(partner.id)
                pairs.append((operation, partner))
            else:
                unpaired.append(operation)
        others = [operation for operation in right if operation.id not in taken]
        pairs.extend(zip(unpaired, others, strict=False))
        pairs.extend((operation, None) for operation in unpaired[len(others) :])
        pairs.extend((None, operation) for operation in others[len(unpaired) :])
    return pairs


def _path(operation: Operation, graph: ExecutionGraph) -> tuple[str, ...]:
    """The names of the session and of the operations around it, then its own."""
    session = graph.sessions.get(operation.session or "")
    return (session.name if session else "", *(one.name for one in _around(operation, graph)), operation.name)


def _around(operation: Operation, graph: ExecutionGraph) -> list[Operation]:
    around: list[Operation] = []
    seen = {operation.id}
    parent = graph.operations.get(operation.parent or "")
    while parent is not None and parent.id not in seen:
        seen.add(parent.id)
        around.append(parent)
        parent = graph.operations.get(parent.parent or "")
    return around[::-1]


def _content(links: Iterable[Link], graph: ExecutionGraph) -> str:
    return json.dumps([(role, graph.variables[vid].value) for role, vid in links], sort_keys=True)


def _difference(
    left: Operation | None, right: Operation | None, first: ExecutionGraph, second: ExecutionGraph
) -> OperationDifference | None:
    if left is None or right is None:
        return OperationDifference("only in the second" if left is None else "only in the first", left, right)
    inputs = _roles(left.inputs, right.inputs, first, second)
    outputs = _roles(left.outputs, right.outputs, first, second)
    if inputs:
        return OperationDifference("inputs", left, right, inputs, outputs)
    if outputs or (left.status, left.error) != (right.status, right.error):
        return OperationDifference("outputs", left, right, (), outputs)
    return None


def _roles(
    left: Sequence[Link], right: Sequence[Link], first: ExecutionGraph, second: ExecutionGraph
) -> tuple[str, ...]:
    values: dict[str, tuple[list[str], list[str]]] = {}
    for side, links, graph in ((0, left, first), (1, right, second)):
        for role, vid in links:
            values.setdefault(role, ([], []))[side].append(json.dumps(graph.variables[vid].value, sort_keys=True))
    return tuple(role for role, (one, other) in values.items() if one != other)


def _cause(found: Sequence[OperationDifference], first: ExecutionGraph) -> OperationDifference | None:
    made_otherwise = [one for one in found if one.parting == "outputs" and one.first]
    around = {outer.id for one in made_otherwise if one.first for outer in _around(one.first, first)}
    for one in made_otherwise:
        if one.operation.id not in around:
            return one
    for one in found:
        if one.parting != "inputs":
            return one
    return found[0] if found else None


def _behind(cause: OperationDifference, first: ExecutionGraph, second: ExecutionGraph) -> tuple[set[str], set[str]]:
    """Ids of the operations in either graph that the cause reaches, those around it included."""
    reached: tuple[set[str], set[str]] = (set(), set())
    for ids, operation, graph in ((reached[0], cause.first, first), (reached[1], cause.second, second)):
        if operation is not None:
            ids.update(one.id for one in _around(operation, graph))
            ids.update(graph.forward_slice(*operation.output_ids()).operations)
    return reached
