"""Traces of cases on their way to MLflow, a batch at a time: MLflow's own way takes 50 ms a trace and more.

A trace's id follows from what it shows, so that writing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from experiments.mlflow_tracking.case_traces import CaseTrace
from experiments.mlflow_tracking.prompt_versions import version_of
from experiments.mlflow_tracking.run_artifacts import EXPECTED, SEPARATOR
from experiments.mlflow_tracking.store import RefusedError, TrackingStore, all_of
from experiments.mlflow_tracking.writes import Write, batches
from tracing.interchange.mlflow_traces import encodable, written_span
from tracing.interchange.spans import Span, digest
from tracing.recording.redaction import excerpt

BATCH = 20
"""Traces of one write: it is done within the second for which another process may have to wait."""

OPERATION = "memtune.operation"
"""Attribute of a span: the operation's id in memtune's trace file."""

_COMPLETE = "mlflow.trace.spansLocation"
"""The tag that a store sets when it has the spans, which are written last."""

_LONGEST_NAME, _LONGEST_PREVIEW, _LONGEST_SESSION = 500, 950, 240
_AT_ONCE = 100


class LogTraces(Write):
    """Cases as traces of a run, with their assessments; those that the store has already are left as they are.

    `final` are those of the prompts that the run ended with: the parent run shows them too.
    """

    kind: Literal["traces"] = "traces"
    traces: tuple[CaseTrace, ...]
    final: bool = False

    @property
    def size(self) -> int:
        return len(self.traces)

    def apply(self, store: TrackingStore, folder: Path) -> None:
        from mlflow.tracing.client import TracingClient

        run = store.run_id(self.run)
        with store.as_default():
            client = TracingClient(store.uri)
            by_id = {_trace_id(store, self.run, trace.mark, final=self.final): trace for trace in self.traces}
            infos = client.store.batch_get_trace_infos(list(by_id))
            complete = {info.trace_id for info in infos if _COMPLETE in info.tags}
            missing = {trace_id: trace for trace_id, trace in by_id.items() if trace_id not in complete}
            versions = _versions(store, missing.values())
            spans: list[Any] = []
            for trace_id, trace in missing.items():
                trace_spans = _spans(trace_id, trace)
                used = [versions[prompt] for prompt in trace.prompts.items() if prompt in versions]
                client.start_trace(_info(store, run, trace_id, trace, trace_spans, used))
                if used:
                    client.store.link_prompts_to_trace(trace_id, used)
                spans += trace_spans
            if self.final:
                store.client.link_traces_to_run(list(by_id), store.run_id())
            try:
                client.log_spans(store.experiment_id, spans)
            except NotImplementedError as error:
                raise RefusedError(f"traces of cases need an MLflow server of version 3.4 or newer ({error})") from None


class KeepTraces(Write):
    """Leave a run the traces with these marks alone: when it is resumed, it may end with another champion."""

    kind: Literal["keep traces"] = "keep traces"
    marks: tuple[str, ...]
    final: bool = False

    def apply(self, store: TrackingStore, folder: Path) -> None:
        run = store.find_run(self.run)
        if run is None:
            return
        trace_ids = {_trace_id(store, self.run, mark, final=self.final) for mark in self.marks}
        where = store.experiment_id
        search = partial(
            store.client.search_traces, locations=[where], run_id=run, include_spans=False, max_results=_AT_ONCE
        )
        # A program that traces with MLflow itself may have it write in the background: hence `flush`.
        infos = [trace.info for trace in all_of(lambda token: search(page_token=token, flush=True))]
        others = [info.trace_id for info in infos if info.trace_id not in trace_ids]
        for part in batches(others, _AT_ONCE):
            store.client.delete_traces(where, trace_ids=list(part))


def trace_writes(run: str, traces: Sequence[CaseTrace], *, final: bool) -> Iterator[Write]:
    """What makes these the traces of a run, and no others; `final` as in `LogTraces`."""
    yield KeepTraces(run=run, marks=tuple(trace.mark for trace in traces), final=final)
    for part in batches(traces, BATCH):
        yield LogTraces(run=run, traces=part, final=final)


def _trace_id(store: TrackingStore, run: str, mark: str, *, final: bool) -> str:
    # A store cannot take back that a trace is linked to another run, so one that ceases to be final is made anew.
    return f"tr-{digest(store.key, run, mark, str(final), digits=32)}"


def _versions(store: TrackingStore, traces: Any) -> dict[tuple[str, str], Any]:
    """The registered versions of prompts, by name and digest of the text."""
    prompts = dict.fromkeys(prompt for trace in traces for prompt in trace.prompts.items())
    versions = {prompt: version_of(store.client, *prompt) for prompt in prompts}
    return {prompt: version for prompt, version in versions.items() if version is not None}


def _info(
    store: TrackingStore, run: str, trace_id: str, trace: CaseTrace, spans: Sequence[Any], prompts: Sequence[Any]
) -> Any:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState
    from mlflow.tracing.constant import TraceMetadataKey, TraceTagKey
    from mlflow.tracing.utils.prompt import update_linked_prompts_tag

    root = spans[0]
    tags = {TraceTagKey.TRACE_NAME: excerpt(trace.name, _LONGEST_NAME), **trace.tags}
    if prompts:
        tags[TraceTagKey.LINKED_PROMPTS] = update_linked_prompts_tag(None, list(prompts))
    return TraceInfo(
        trace_id=trace_id,
        trace_location=TraceLocation.from_experiment_id(store.experiment_id),
        request_time=root.start_time_ns // 10**6,
        execution_duration=(root.end_time_ns - root.start_time_ns) // 10**6,
        state=TraceState.OK,
        request_preview=encodable(trace.asked),
        response_preview=encodable(excerpt(trace.reply, _LONGEST_PREVIEW)),
        trace_metadata={
            "mlflow.trace_schema.version": "3",
            TraceMetadataKey.SOURCE_RUN: run,
            TraceMetadataKey.TRACE_SESSION: encodable(excerpt(trace.conversation, _LONGEST_SESSION)),
        },
        tags=encodable(tags),
        assessments=list(_assessments(trace_id, trace)),
    )


def _spans(trace_id: str, trace: CaseTrace) -> list[Any]:
    """The root first, which lasts from the first to the last of the others."""
    from mlflow.entities import Span as MlflowSpan

    ids = {span.operation: _span_id(trace_id, span.operation) for span in trace.spans}
    root = Span(
        id=_span_id(trace_id, None),
        parent=None,
        name=excerpt(trace.name, _LONGEST_NAME),
        start=min((span.start for span in trace.spans), default=0),
        end=max((span.end for span in trace.spans), default=0),
        kind="graph",
        ok=True,
        attributes=_values({"question": trace.question, "conversation": trace.conversation}, {"reply": trace.reply}),
    )
    others = [
        Span(
            id=ids[span.operation],
            parent=ids.get(span.parent or "", root.id),
            name=span.name,
            start=span.start,
            end=span.end,
            kind=span.kind,
            ok=span.failed is None,
            error=span.failed,
            attributes={
                **span.attributes,
                **_values(span.inputs, span.outputs),
                **({"error": span.failed} if span.failed else {}),
                OPERATION: span.operation,
            },
        )
        for span in trace.spans
    ]
    digits = trace_id.removeprefix("tr-")
    return [MlflowSpan.from_dict(encodable(written_span(span, digits))) for span in (root, *others)]


def _values(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
    return {"mlflow.spanInputs": dict(inputs), "mlflow.spanOutputs": dict(outputs)}


def _assessments(trace_id: str, trace: CaseTrace) -> Iterator[Any]:
    from mlflow.entities import AssessmentSource, Expectation, Feedback

    data_source = AssessmentSource(source_type="HUMAN", source_id="data set")
    # One text, since MLflow shows a list as JSON.
    expected = Expectation(name=EXPECTED, value=encodable(SEPARATOR.join(trace.answers)), source=data_source)
    yield _with_id(trace_id, "expectation", expected)
    there = {span.operation for span in trace.spans}
    for place, feedback in enumerate(trace.feedback):
        assessment = Feedback(
            name=feedback.name,
            value=feedback.value,
            source=AssessmentSource(source_type="CODE", source_id=feedback.source),
            rationale=feedback.rationale,
            metadata=dict(feedback.metadata) or None,
            span_id=_span_id(trace_id, feedback.operation) if feedback.operation in there else None,
        )
        yield _with_id(trace_id, f"feedback {place}", assessment)


def _with_id(trace_id: str, part: str, assessment: Any) -> Any:
    assessment.assessment_id = f"a-{digest(trace_id, part, digits=32)}"
    return assessment


def _span_id(trace_id: str, operation: str | None) -> str:
    return digest(trace_id, "root") if operation is None else digest(trace_id, "operation", operation)
