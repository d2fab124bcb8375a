"""The part of a graph that shows a failure: what is blamed, the evidence, and how the answer was produced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attribution.text.content import text_of
from experiments.attributing.attributions import CaseLine
from experiments.display.terminal import shortened
from tracing.graph.elements import Link, Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph

MOST_OPERATIONS = 12
MOST_VALUES = 6
LONGEST_VALUE = 260


@dataclass(frozen=True, slots=True)
class SliceValue:
    """A variable as it is shown; `marked` if a blame is based on it."""

    id: str
    role: str
    name: str
    text: str
    marked: bool


@dataclass(frozen=True, slots=True)
class SliceOperation:
    """An operation as it is shown; `more_inputs` and `more_outputs` count what is left out."""

    id: str
    name: str
    session: str
    blamed: bool
    error: str | None
    inputs: tuple[SliceValue, ...]
    outputs: tuple[SliceValue, ...]
    more_inputs: int
    more_outputs: int


def slice_of(graph: ExecutionGraph, case: CaseLine) -> tuple[SliceOperation, ...]:
    """The operations that show a failure, in the order recorded, at most twelve.

    These are the blamed ones, those that made or read the evidence, and those that led from the question to the reply;
    what is least needed is left out first. What came after the reply is no part of it.
    """
    answering = graph.producers(case.prediction) if case.prediction in graph.variables else []
    graph = graph.until(answering[-1].id) if answering else graph
    blamed = [oid for blame in case.decisive if (oid := blame.operation_id) in graph.operations and oid is not None]
    evidence = dict.fromkeys(vid for b in case.decisive for vid in b.evidence if vid in graph.variables)
    needed = [*blamed, *(operation.id for operation in answering)]
    for answer in answering:
        if answer.session is not None:
            producers = (producer for vid in answer.input_ids() for producer in graph.producers(vid))
            needed += [producer.id for producer in producers if producer.session == answer.session]
    for vid in evidence:
        needed += [producer.id for producer in graph.producers(vid)]
        if graph.variables[vid].kind == "message":
            needed += [consumer.id for consumer in graph.consumers(vid)[:2]]
    chosen = set(list(dict.fromkeys(needed))[:MOST_OPERATIONS])
    marked = set(evidence) | ({case.prediction} if case.prediction else set())
    return tuple(
        _operation_view(graph, operation, operation.id in blamed, marked, case.evidence)
        for operation in graph.operations.values()
        if operation.id in chosen
    )


def _operation_view(
    graph: ExecutionGraph, operation: Operation, blamed: bool, marked: set[str], turns: Sequence[str]
) -> SliceOperation:
    def telling(link: Link) -> bool:
        return link[1] in marked or graph.variables[link[1]].name in turns

    def shown_values(links: Sequence[Link]) -> tuple[tuple[SliceValue, ...], int]:
        first = [link for link in links if telling(link)]
        rest = [
            link for link in links if not telling(link) and graph.variables[link[1]].kind not in ("prompt", "query")
        ]
        chosen = [*first, *rest][:MOST_VALUES]
        values = tuple(_value(role, graph.variables[vid], telling((role, vid))) for role, vid in chosen)
        return values, len(first) + len(rest) - len(chosen)

    inputs, more_inputs = shown_values(operation.inputs)
    outputs, more_outputs = shown_values(operation.outputs)
    session = graph.sessions.get(operation.session or "")
    return SliceOperation(
        id=operation.id,
        name=operation.name,
        session=session.name if session is not None else "",
        blamed=blamed,
        error=operation.error,
        inputs=inputs,
        outputs=outputs,
        more_inputs=more_inputs,
        more_outputs=more_outputs,
    )


def _value(role: str, variable: Variable, marked: bool) -> SliceValue:
    text = " ".join((text_of(variable.value) or ("" if variable.value is None else str(variable.value))).split())
    shown_text = shortened(text, LONGEST_VALUE) or variable.kind.replace("_", " ")
    return SliceValue(variable.id, role, variable.name, shown_text, marked)
