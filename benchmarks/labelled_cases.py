"""Labelled cases: wrong answers whose decisive operation is known, to measure methods of attribution by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from attribution.cases import Case, ErrorType
from attribution.failures import NOT_KNOWN
from attribution.judging.words import judge
from attribution.recordings import Recording
from tracing.systems.conversations import Question


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
    """Labelled cases in the order of their files; and labels that were not read, or not wholly, one line each."""

    name: str
    cases: tuple[LabelledCase, ...]
    skipped: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def as_complaints(cases: Iterable[LabelledCase]) -> list[LabelledCase]:
    """The cases as users have them who know that a reply is wrong, and no more: without answers, evidence and facts."""
    plain: dict[int, Recording] = {}
    complaints = []
    for labelled in cases:
        key = id(labelled.recording)
        if key not in plain:
            talk = labelled.recording.conversation.model_copy(update={"facts": (), "questions": ()})
            plain[key] = replace(labelled.recording, conversation=talk)
        plain_question = Question(
            id=labelled.case.question.id, question=labelled.case.question.question, answers=(NOT_KNOWN,)
        )
        judgement = replace(judge(labelled.case.reply, plain_question.answers), score=0.0)
        complaints.append(
            replace(
                labelled,
                case=replace(labelled.case, question=plain_question, judgement=judgement),
                recording=plain[key],
            )
        )
    return complaints
