"""Cases as MLflow traces: one span per operation with its times, and the blame as feedback on its operation's span.

A trace holds what led to the answer: the operations behind the reply, those that built the memory, and those blamed
for losing what it lacks. With every operation of the conversation, all its questions would have the same long trace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from attribution.attributor import SURVIVAL
from experiments.display.markdown_text import literal
from experiments.mlflow_tracking.store import RefusedError, TrackingStore
from experiments.mlflow_tracking.writes import Write
from tracing.interchange.mlflow_traces import span_type, token_usage, values_by_role
from tracing.interchange.spans import nanoseconds

if TYPE_CHECKING:
    from experiments.runs.seen_cases import SeenCase
    from tracing.graph.elements import Operation
    from tracing.graph.execution_graph import ExecutionGraph

CASE = "memtune.case"
"""Tag that identifies a case's trace."""

CONTENT = "memtune.content"
"""Tag that says what the trace shows: a resumed run may end with another champion, which answers otherwise."""

OPERATION = "memtune.operation"
"""Attribute of a span: the operation's id in memtune's trace file."""

_EXPECTED = "expected_answer"
_TITLE_LIMIT = 500


class CaseSpan(BaseModel):
    """An operation as a span; times are in nanoseconds since the epoch."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: str
    name: str
    parent: str | None
    type: str
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


class LogCase(Write):
    """A case's trace with its feedback; an existing one is completed, or replaced if it shows something else."""

    kind: Literal["case"] = "case"
    title: str
    tags: Mapping[str, str]
    conversation: str = ""
    question: str
    answers: tuple[str, ...]
    reply: str
    spans: tuple[CaseSpan, ...]
    feedback: tuple[CaseFeedback, ...]

    def apply(self, store: TrackingStore, folder: Path) -> None:
        run = store.run_id(self.run)
        tags = {CASE: _mark(store, self.title), CONTENT: self.content}
        with store.as_default():
            trace = self._found(store, tags)
            if trace is None:
                self._record(store, run, tags)
                trace = self._found(store, tags)
            if trace is None:
                # MLflow logs what goes wrong on the way there, and the search shows that the store answers.
                raise RefusedError(f"{self.title}: the store did not take the complete trace")
            self._assess(trace)

    @property
    def content(self) -> str:
        """Digest of what the trace shows, without times and costs: a resumed run has its replies from the cache."""
        measured = {"spans": {"__all__": {"start", "end", "attributes"}}}
        return _digest(self.model_dump_json(exclude=measured))

    def _found(self, store: TrackingStore, tags: Mapping[str, str]) -> Any:
        """The trace, if it is complete; one that an outage left incomplete, or that shows another, is deleted."""
        where = store.experiment_id
        wanted = f"tags.`{CASE}` = '{tags[CASE]}'"
        # A program that traces with MLflow itself may have it write in the background.
        for trace in store.client.search_traces(locations=[where], filter_string=wanted, flush=True):
            if trace.info.tags.get(CONTENT) == tags[CONTENT] and len(trace.data.spans) == len(self.spans) + 1:
                return trace
            store.client.delete_traces(where, trace_ids=[trace.info.trace_id])
        return None

    def _record(self, store: TrackingStore, run: str, tags: Mapping[str, str]) -> None:
        client = store.client
        root = client.start_trace(
            self.title[:_TITLE_LIMIT],
            span_type="CHAIN",
            # MLflow compares two runs by these, and two conversations may be asked the same.
            inputs={"question": self.question, "conversation": self.conversation},
            tags={**self.tags, **tags},
            experiment_id=store.experiment_id,
            start_time_ns=min((span.start for span in self.spans), default=None),
            run_id=run,
        )
        made: dict[str, str] = {}
        for span in self.spans:
            begun = client.start_span(
                span.name,
                trace_id=root.trace_id,
                parent_id=made.get(span.parent or "", root.span_id),
                span_type=span.type,
                inputs=dict(span.inputs),
                attributes={**span.attributes, OPERATION: span.operation},
                start_time_ns=span.start,
            )
            made[span.operation] = begun.span_id
            client.end_span(
                root.trace_id,
                begun.span_id,
                outputs=dict(span.outputs),
                attributes={"error": span.failed} if span.failed else None,
                status="ERROR" if span.failed else "OK",
                end_time_ns=span.end,
            )
        client.end_trace(
            root.trace_id,
            outputs={"reply": self.reply},
            end_time_ns=max((span.end for span in self.spans), default=None),
        )

    def _assess(self, trace: Any) -> None:
        import mlflow
        from mlflow.entities import AssessmentSource

        spans = {span.attributes.get(OPERATION): span.span_id for span in trace.data.spans}
        there = {(each.name, each.span_id) for each in trace.info.assessments}
        where = trace.info.trace_id
        if (_EXPECTED, None) not in there:
            known = AssessmentSource(source_type="HUMAN", source_id="data set")
            mlflow.log_expectation(trace_id=where, name=_EXPECTED, value=list(self.answers), source=known)
        for each in self.feedback:
            span = spans.get(each.operation) if each.operation else None
            if (each.name, span) not in there:
                mlflow.log_feedback(
                    trace_id=where,
                    name=each.name,
                    value=each.value,
                    source=AssessmentSource(source_type="CODE", source_id=each.source),
                    rationale=each.rationale,
                    metadata=dict(each.metadata) or None,
                    span_id=span,
                )


class KeepCases(Write):
    """Delete the traces of a run other than those with these titles: a resumed run may end with another champion."""

    kind: Literal["keep cases"] = "keep cases"
    titles: tuple[str, ...]

    def apply(self, store: TrackingStore, folder: Path) -> None:
        run = store.find_run(self.run)
        if run is None:
            return
        kept = {_mark(store, title) for title in self.titles}
        where, token = store.experiment_id, None
        others: list[str] = []
        while True:
            page = store.client.search_traces(locations=[where], run_id=run, page_token=token, include_spans=False)
            others += [trace.info.trace_id for trace in page if trace.info.tags.get(CASE) not in kept]
            token = page.token
            if not token:
                break
        for trace_id in others:
            store.client.delete_traces(where, trace_ids=[trace_id])


def case_traces(side: str, cases: Iterable[SeenCase], metric: str, method: str) -> Iterator[LogCase]:
    """The traces of cases, in the run of their `side`, `seed` or `champion`; `method` attributed them."""
    source = "information survival" if method == SURVIVAL else method
    for seen in cases:
        case, attribution = seen.case, seen.attribution
        blames = attribution.decisive if attribution is not None else ()
        spans = _spans(seen.graph, case.prediction, [blame.operation_id for blame in blames])
        there = {span.operation for span in spans}
        feedback = [CaseFeedback(name=metric, value=case.judgement.score, source="memtune judge")]
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
        yield LogCase(
            run=side,
            title=f"{side} {case.conversation} {case.question.id}",
            tags={"memtune.side": side, "memtune.split": seen.split, "memtune.passed": str(case.passed).lower()},
            conversation=case.conversation,
            question=case.question.question,
            answers=case.question.answers,
            reply=case.reply,
            spans=tuple(spans),
            feedback=tuple(feedback),
        )


def _spans(graph: ExecutionGraph, prediction: str | None, blamed: Sequence[str | None]) -> list[CaseSpan]:
    behind = graph.backward_slice(prediction).operations if prediction in graph.variables else {}
    wanted = {*behind, *(operation for operation in blamed if operation in graph.operations)}
    # An outer operation is recorded after the inner one, but a span needs its parent first.
    ordered = sorted((graph.operations[name] for name in wanted), key=lambda each: (each.started, -(each.ended or 0)))
    return [_span(graph, operation) for operation in ordered]


def _span(graph: ExecutionGraph, operation: Operation) -> CaseSpan:
    attributes = dict(operation.attributes)
    if operation.calls:
        attributes |= {"model": operation.model, "calls": operation.calls, "calls from cache": operation.cached_calls}
        attributes |= token_usage(operation)
    return CaseSpan(
        operation=operation.id,
        name=operation.name,
        parent=operation.parent,
        type=span_type(operation.kind),
        start=nanoseconds(operation.started),
        end=nanoseconds(operation.ended if operation.ended is not None else operation.started),
        failed=operation.error,
        inputs=values_by_role(graph, operation.inputs),
        outputs=values_by_role(graph, operation.outputs),
        attributes=attributes,
    )


def _mark(store: TrackingStore, title: str) -> str:
    return _digest(store.key, title)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
