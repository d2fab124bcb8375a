"""What a case's trace in MLflow shows: a span for each operation, and the blame as feedback on its operation's span.

A trace holds what led to the answer: the operations behind the reply, those that built the memory, and those blamed
for losing what it lacks. With every operation of the conversation, all its questions would have the same long trace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from attribution.attributor import SURVIVAL
from experiments.display.terminal import literal
from tracing.interchange.mlflow_traces import token_usage, values_by_role
from tracing.interchange.spans import nanoseconds
from tracing.recording.redaction import Redaction

if TYPE_CHECKING:
    from experiments.mlflow_tracking.question_set import QuestionSet
    from experiments.runs.seen_cases import SeenCase
    from tracing.graph.elements import Operation
    from tracing.graph.execution_graph import ExecutionGraph

_LEGIBLE = Redaction(longest=20_000)
"""A conversation that is a span's input would be written once for each of its questions."""

_Shift = Callable[[int], int]


class CaseSpan(BaseModel):
    """An operation as a span; times are in nanoseconds since the epoch, moved as `CaseTrace` says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: str
    name: str
    parent: str | None
    kind: str
    start: int
    end: int
    failed: str | None
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    attributes: Mapping[str, Any]


class CaseFeedback(BaseModel):
    """An assessment; `operation` is the one whose span it is on, None for the whole trace."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    value: float | str
    source: str
    operation: str | None = None
    rationale: str | None = None
    metadata: Mapping[str, str] = {}


class CaseTrace(BaseModel):
    """A case as a trace.

    A memory may be built long before it is asked. The trace has the time of the work alone: what came before a pause is
    moved to its end, and every span says when it really began.

    Attributes:
        name: of the trace.
        asked: the question as MLflow lists it, unlike all others of its set.
        prompts: name in the registry → digest of the text that made it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    asked: str
    tags: Mapping[str, str]
    conversation: str
    question: str
    answers: tuple[str, ...]
    reply: str
    spans: tuple[CaseSpan, ...]
    feedback: tuple[CaseFeedback, ...]
    prompts: Mapping[str, str] = {}
    mark: str = ""

    def marked(self) -> CaseTrace:
        """The same with its mark: what it shows, without times and costs, which a resumed run has otherwise."""
        content = self.model_dump_json(exclude={"mark": True, "spans": {"__all__": {"start", "end", "attributes"}}})
        return self.model_copy(update={"mark": hashlib.sha256(content.encode()).hexdigest()[:32]})


def case_traces(
    side: str,
    cases: Sequence[SeenCase],
    questions: QuestionSet,
    *,
    metric: str,
    method: str,
    prompts: Mapping[str, str],
) -> Iterator[CaseTrace]:
    """The traces of a side's cases, which `method` attributed; `prompts` made them, as `CaseTrace.prompts` says."""
    source = "information survival" if method == SURVIVAL else method
    for seen_case in cases:
        case, attribution = seen_case.case, seen_case.attribution
        blames = attribution.decisive if attribution is not None else ()
        spans = _spans(seen_case.graph, case.prediction, [blame.operation_id for blame in blames])
        there = {span.operation for span in spans}
        name = questions.metric(metric, seen_case.split)
        feedback = [CaseFeedback(name=name, value=case.judgement.score, source="memtune judge")]
        for blame in blames:
            feedback.append(
                CaseFeedback(
                    name="blame",
                    value=blame.operation,
                    source=f"memtune {source}",
                    operation=blame.operation_id if blame.operation_id in there else None,
                    rationale=literal(f"{blame.error_type}: {blame.reason}"),  # the UI shows it as Markdown
                    metadata={"error_type": blame.error_type, "confidence": f"{blame.confidence:g}"},
                )
            )
        yield CaseTrace(
            name=f"{side} {case.conversation} {case.question.id}",
            asked=questions.titles[case.conversation, case.question.id],
            tags={"memtune.side": side, "memtune.split": seen_case.split, "memtune.passed": str(case.passed).lower()},
            conversation=case.conversation,
            question=case.question.question,
            answers=case.question.answers,
            reply=case.reply,
            spans=tuple(spans),
            feedback=tuple(feedback),
            prompts=prompts,
        ).marked()


def _spans(graph: ExecutionGraph, prediction: str | None, blamed: Sequence[str | None]) -> list[CaseSpan]:
    behind = graph.backward_slice(prediction).operations if prediction in graph.variables else {}
    names = {*behind, *(operation for operation in blamed if operation in graph.operations)}
    # An outer operation is recorded after the inner one, but a span needs its parent first.
    ordered = sorted(
        (graph.operations[name] for name in names), key=lambda operation: (operation.started, -(operation.ended or 0))
    )
    shift = _without_pauses([_times(operation) for operation in ordered])
    return [_span(graph, operation, shift) for operation in ordered]


def _without_pauses(times: Sequence[tuple[int, int]]) -> _Shift:
    """Gives how far to move what begins at a moment, if nothing is to happen between no two of these in order."""
    pauses: list[tuple[int, int]] = []
    busy_until = times[0][1] if times else 0
    for start, end in times:
        if start > busy_until:
            pauses.append((start, start - busy_until))
        busy_until = max(busy_until, end)
    return lambda moment: sum(length for start, length in pauses if start > moment)


def _times(operation: Operation) -> tuple[int, int]:
    start = nanoseconds(operation.started)
    return start, max(start, nanoseconds(operation.ended)) if operation.ended is not None else start


def _span(graph: ExecutionGraph, operation: Operation, shift: _Shift) -> CaseSpan:
    start, end = _times(operation)
    moved = shift(start)
    attributes = dict(operation.attributes)
    attributes["memtune.began"] = datetime.fromtimestamp(start / 1e9, UTC).isoformat(timespec="milliseconds")
    if operation.calls:
        attributes |= {"model": operation.model, "calls": operation.calls, "calls from cache": operation.cached_calls}
        attributes |= token_usage(operation)
    return CaseSpan(
        operation=operation.id,
        name=operation.name,
        parent=operation.parent,
        kind=operation.kind,
        start=start + moved,
        end=end + moved,
        failed=operation.error,
        inputs=_LEGIBLE.value(values_by_role(graph, operation.inputs)),
        outputs=_LEGIBLE.value(values_by_role(graph, operation.outputs)),
        attributes=attributes,
    )
