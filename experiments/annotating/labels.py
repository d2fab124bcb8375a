"""A label: what one annotator says about one wrong answer, with ids that are checked against its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from attribution.cases import OUTSIDE_THE_SYSTEM, ErrorType
from experiments.display.terminal import one_line
from tracing.errors import MemtuneError
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.recording.redaction import redact
from tracing.suggestions import did_you_mean

Action = Literal["labelled", "accepted", "corrected", "rejected", "undone"]
"""Given without a verdict at hand; the verdict shown was taken over, changed, or called wrong; an undo."""

ERROR_TYPES: tuple[ErrorType, ...] = get_args(ErrorType)
LONGEST_NAME, LONGEST_NOTE, MOST_IDS = 60, 4000, 100


class LabelError(MemtuneError):
    """A label cannot be taken as it is; begins with the field."""


@dataclass(frozen=True, slots=True)
class CaseId:
    """A wrong answer, whatever its file is called: start of the SHA-256 of its trace, and the reply's variable."""

    trace: str
    case: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a label says; no error type where a verdict is only called wrong, no method without a verdict at hand.

    Operations are ids of the decisive ones, evidence ids of the variables that show it.
    """

    action: Action
    error_type: ErrorType | None
    operations: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    note: str = ""
    method: str = ""


def assessment_from(request: Any, graph: ExecutionGraph) -> Assessment:
    """The assessment in a request, checked.

    Raises:
        LabelError: a field is missing or wrong, or an id names nothing in the graph.
    """
    action, error_type = request.get("action"), request.get("error_type") or None
    if action not in get_args(Action) or action == "undone":
        raise LabelError(f"action: {action!r} is none; give labelled, accepted, corrected or rejected")
    if error_type is None and action != "rejected":
        raise LabelError("error type: is missing; choose one, or reject the verdict without one")
    if error_type is not None and error_type not in ERROR_TYPES:
        raise LabelError(f"error type: {error_type!r} is none; give one of {', '.join(ERROR_TYPES)}")
    operations = _element_ids(
        request, "operations", graph.operations, "operation", "ran {:,} times; give the id of one execution"
    )
    if operations and (error_type is None or error_type in OUTSIDE_THE_SYSTEM):
        raise LabelError(f"operations: {error_type or 'a rejected verdict'} names no operation; leave them out")
    evidence = _element_ids(
        request, "evidence", graph.variables, "variable", "names {:,} variables; give the id of one"
    )
    note, method = _text(request, "note", LONGEST_NOTE), _text(request, "method", LONGEST_NAME)
    return Assessment(action, error_type, operations, evidence, note, method)


def annotator_from(request: Any) -> str:
    """The annotator's name in a request.

    Raises:
        LabelError: it is missing or too long.
    """
    name = one_line(str(request.get("annotator") or ""))
    if not 0 < len(name) <= LONGEST_NAME:
        raise LabelError(f"annotator: give a name of at most {LONGEST_NAME} characters")
    return name


def _element_ids(
    request: Any, key: str, elements: Mapping[str, Operation] | Mapping[str, Variable], kind: str, several: str
) -> tuple[str, ...]:
    """The ids in a request, or names that only one element has, as ids; `several` is what is wrong with other names."""
    raw = request.get(key) or []
    if not isinstance(raw, list) or not all(isinstance(name, str) for name in raw) or len(raw) > MOST_IDS:
        raise LabelError(f"{key}: give a list of at most {MOST_IDS} ids")
    ids: dict[str, None] = {}
    for name in filter(None, map(str.strip, raw)):
        matches = [name] if name in elements else [element.id for element in elements.values() if element.name == name]
        if len(matches) > 1:
            raise LabelError(f"{key}: {name} {several.format(len(matches))}, such as {', '.join(matches[:3])}")
        if not matches:
            raise LabelError(f"{key}: {name!r} names no {kind} of this graph{did_you_mean(name, elements)}")
        ids[matches[0]] = None
    return tuple(ids)


def _text(request: Any, key: str, longest: int) -> str:
    text = redact(str(request.get(key) or "").strip())
    if len(text) > longest:
        raise LabelError(f"{key}: has {len(text):,} characters; {longest:,} are taken")
    return text
