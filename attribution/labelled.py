"""Labelled cases: wrong answers whose decisive operation is known, to measure methods of attribution by."""

from __future__ import annotations

from dataclasses import dataclass

from attribution.cases import Case, ErrorType
from attribution.recordings import Recording


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """A wrong answer with its label.

    Attributes:
        case: the wrong answer.
        recording: what it is attributed from; cases of one graph share it.
        error_type: the true one.
        operation_ids: the operation at fault; several where they share the fault, none where the label names none.
        acceptable_op_ids: operations that may be blamed, including those at fault.
        fault: kind of the injected fault; None for a case that people labelled.
        condition: under which the fault was injected or its trace is read; None for a case that people labelled.
    """

    case: Case
    recording: Recording
    error_type: ErrorType
    operation_ids: tuple[str, ...]
    acceptable_op_ids: tuple[str, ...]
    fault: str | None = None
    condition: str | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """Labelled cases.

    Attributes:
        name: of the suite.
        cases: in the order of their files and labels.
        skipped: labels that could not be read, one line each.
        doubts: labels that were read, but not all of what they say, one line each.
    """

    name: str
    cases: tuple[LabelledCase, ...]
    skipped: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
