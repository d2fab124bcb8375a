"""Labels of wrong answers in an annotated graph: whose fault people say each is.

Annotated graphs are smartcomment files with MemTraceBench's `annotations`: for each failure its error type, the
operation at fault (null where several share the fault), and the operations that are acceptable too. Required are
`prediction_id`, `final_error_type`, and `query` or `query_id`; `golden_answers` or `golden_answers_id` where the right
answer is known; `source_evidence_ids`, a list of message ids, where the evidence is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from attribution.cases import Case, ErrorType
from attribution.failures import case_of
from attribution.recordings import Recording
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import smartcomment

_TYPES: Mapping[str, ErrorType] = {name: name for name in get_args(ErrorType)} | {"LLMAsAJudgeError": "JudgeError"}


@dataclass(frozen=True, slots=True)
class FaultLabel:
    """What people say of a wrong answer.

    Attributes:
        error_type: the true one.
        operation_ids: the operation at fault; several where they share the fault, none where the label names none.
        acceptable_op_ids: operations that may be blamed, including those at fault.
    """

    error_type: ErrorType
    operation_ids: tuple[str, ...]
    acceptable_op_ids: tuple[str, ...]


@dataclass(slots=True)
class UnreadLabels:
    """Labels that were not read (`skipped`), or not wholly (`doubts`), one line each."""

    skipped: list[str]
    doubts: list[str]


def labels_in(recording: Recording, where: str, unread: UnreadLabels) -> Iterator[tuple[Case, FaultLabel]]:
    """The labelled cases of an annotated graph; `where` begins what is said of a label in `unread`."""
    graph = recording.graph
    for place, raw in enumerate(smartcomment.annotations_of(graph)):
        at = f"{where}: data.annotations[{place}]"

        def tell(problem: str, at: str = at) -> None:
            unread.doubts.append(f"{at}.{problem}")

        error_type = _TYPES.get(str(raw.get("final_error_type")))
        if error_type is None:
            unread.skipped.append(f"{at}.final_error_type: {raw.get('final_error_type')!r} is not an error type")
            continue
        case = case_of(raw, recording, tell)
        if case is None:
            unread.skipped.append(f"{at}: names no question and reply of the graph; correct query_id or prediction_id")
            continue
        final = raw.get("final_op_id")
        acceptable = _operations(raw.get("acceptable_op_ids"), "acceptable_op_ids", graph, tell)
        gold = _operations([final], "final_op_id", graph, tell) if final else acceptable
        yield case, FaultLabel(error_type, gold, tuple(dict.fromkeys((*gold, *acceptable))))


def _operations(raw: Any, key: str, graph: ExecutionGraph, tell: Callable[[str], None]) -> tuple[str, ...]:
    """Those of the listed operations that the graph has; others are told."""
    if raw is None:
        return ()
    if not isinstance(raw, list):
        tell(f"{key}: is {raw!r}, not a list; give a list of operation ids")
        raw = [raw]
    present = [oid for oid in raw if isinstance(oid, str) and oid in graph.operations]
    for oid in raw:
        if oid not in present:
            tell(f"{key}: {oid!r} names no operation of the graph; correct it, or leave it out")
    return tuple(dict.fromkeys(present))
