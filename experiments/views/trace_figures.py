"""What a trace holds, in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tracing.graph.elements import Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.leaks import leaks_in
from tracing.interchange.agent_memory import interpreted


@dataclass(frozen=True, slots=True)
class OperationFigures:
    """All executions of one step.

    Attributes:
        name, kind: of the operation.
        count: executions.
        errors: those that ended with an exception.
        unfinished: those that did not end.
        calls, cached_calls: model calls made, and how many of them a cache answered.
        prompt_tokens, completion_tokens, cost: summed over the calls.
        seconds: in total, including nested operations.
        median_seconds, longest_seconds: of those that ended; 0 if none has.
    """

    name: str
    kind: str
    count: int
    errors: int
    unfinished: int
    calls: int
    cached_calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float
    seconds: float
    median_seconds: float
    longest_seconds: float


@dataclass(frozen=True, slots=True)
class TraceFigures:
    """A trace as counts.

    Attributes:
        variables, operations, sessions: how many there are.
        variable_kinds: kind → variables of it, the most first.
        by_operation: the figures of each step, those that took longest first.
        by_session: id and name of the session, its operations, its variables; in the order recorded.
        errors: id, name and error of the operations that failed.
        leaks: entries of one user in the context of another, each in a sentence.
    """

    variables: int
    operations: int
    sessions: int
    variable_kinds: dict[str, int]
    by_operation: list[OperationFigures]
    by_session: list[tuple[str, str, int, int]]
    errors: list[tuple[str, str, str]]
    leaks: list[str]


def figures_of(graph: ExecutionGraph) -> TraceFigures:
    """Count what a graph holds."""
    groups: dict[tuple[str, str], list[Operation]] = {}
    for operation in graph.operations.values():
        groups.setdefault((operation.name, operation.kind), []).append(operation)
    operations_in = Counter(operation.session for operation in graph.operations.values())
    variables_in = Counter(variable.session for variable in graph.variables.values())
    return TraceFigures(
        variables=len(graph.variables),
        operations=len(graph.operations),
        sessions=len(graph.sessions),
        variable_kinds=dict(Counter(variable.kind for variable in graph.variables.values()).most_common()),
        by_operation=sorted(
            (_figures(*key, group) for key, group in groups.items()), key=lambda figures: -figures.seconds
        ),
        by_session=[
            (sid, session.name, operations_in[sid], variables_in[sid]) for sid, session in graph.sessions.items()
        ],
        errors=[
            (operation.id, operation.name, operation.error or "")
            for operation in graph.operations.values()
            if operation.status == "error"
        ],
        leaks=list(dict.fromkeys(leak.line() for leak in leaks_in(interpreted(graph)))),
    )


def total(parts: Sequence[OperationFigures]) -> tuple[float, ...]:
    """Calls, cached calls, prompt tokens, completion tokens and cost over all operations."""
    return tuple(_summed(parts).values())


def _summed(parts: Sequence[OperationFigures] | Sequence[Operation]) -> dict[str, Any]:
    names = "calls", "cached_calls", "prompt_tokens", "completion_tokens", "cost"
    return {name: sum(getattr(part, name) for part in parts) for name in names}


def _figures(name: str, kind: str, group: Sequence[Operation]) -> OperationFigures:
    spans = [operation.ended - operation.started for operation in group if operation.ended is not None]
    return OperationFigures(
        name=name,
        kind=kind,
        count=len(group),
        errors=sum(operation.status == "error" for operation in group),
        unfinished=sum(operation.status == "open" for operation in group),
        **_summed(group),
        seconds=sum(spans),
        median_seconds=median(spans) if spans else 0.0,
        longest_seconds=max(spans, default=0.0),
    )
