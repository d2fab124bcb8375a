"""The OpenTelemetry spans that agents make while they run, as operations of the present recording.

A span begins an operation, and ends it with all that its attributes tell; what is done inside of it belongs to it, also
what memtune records by itself. Where a span is of a model that is asked, the client's own recording leaves that out.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from opentelemetry import trace as telemetry
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import StatusCode

from tracing.errors import ConfigError
from tracing.graph.elements import Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.instrument.patches import Instrumentation, is_installed
from tracing.instrument.program_steps import begun, surrounding
from tracing.interchange.documents import FreeIds, Troubles
from tracing.interchange.foreign_spans import kind_of, operation_of
from tracing.interchange.spans import Event, Span
from tracing.recording.operations import ActiveOperation
from tracing.recording.recorder import Recorder
from tracing.recording.scope import RecorderLike, Scope, current
from tracing.temporary_values import environment_with

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace import Span as RunningSpan

_OTHERS = ("http.", "url.", "db.", "rpc.", "messaging.", "mcp.")
"""Beginnings of attributes of spans that tell of transport alone."""

_ORIGIN = "span"
"""Attribute that an importer adds, of which a recording has no need."""


class SpanRecorder(SpanProcessor):
    """Makes operations of the spans of a tracer provider, as long as it is `open`."""

    def __init__(self) -> None:
        self.open = True
        self._running: dict[int, tuple[ActiveOperation, Scope]] = {}

    def on_start(self, span: RunningSpan, parent_context: Context | None = None) -> None:
        """Begin the operation inside what runs here, or inside that of the span around it."""
        here = current.get()
        outside = self._scope_of(telemetry.get_current_span(parent_context)) or here
        recorder = outside.recorder
        attributes = span.attributes or {}
        if not self.open or not isinstance(recorder, Recorder) or recorder.ended:
            return
        if any(name.startswith(_OTHERS) for name in attributes):
            return
        context = span.get_span_context()
        if outside.session is None:
            session = _session_of(recorder, f"{context.trace_id:032x}")
            outside = Scope(recorder, outside.operation, session, outside.inherited)
        self._running[context.span_id] = begun(span.name, kind_of(attributes), outside), here

    def on_end(self, span: ReadableSpan) -> None:
        """End it, with what the span tells."""
        operation, _ = self._running.pop(span.context.span_id, _NOBODY)
        if operation is None or operation.recorder is None or operation.recorder.ended:
            return
        read = ExecutionGraph()
        operation_of(_span_of(span), read, {}, FreeIds(), Troubles())
        for record in read.operations.values():
            _tell(operation, record, read)

    def close(self) -> None:
        """Record nothing any more: a provider keeps its processors."""
        self.open = False
        self._running.clear()

    def scope_here(self) -> Scope | None:
        """Of the span that runs here, unless something else was entered inside of it."""
        return self._scope_of(telemetry.get_current_span())

    def _scope_of(self, span: telemetry.Span) -> Scope | None:
        operation, outside = self._running.get(span.get_span_context().span_id, _NOBODY)
        here = current.get()
        return operation if here is outside or here.recorder is None else None


_NOBODY: tuple[None, None] = (None, None)


def _session_of(recorder: Recorder, trace: str) -> str:
    """The session of a trace of spans that began in none."""
    sessions: dict[str, str] = recorder.beside.setdefault(SpanRecorder, {})
    with recorder.lock:
        recorder.settle()
        if trace not in sessions:
            sessions[trace] = recorder.builder.add_session(trace, {}).id
    return sessions[trace]


def _span_of(span: ReadableSpan) -> Span:
    return Span(
        f"{span.context.span_id:016x}",
        None,
        span.name,
        span.start_time or 0,
        span.end_time,
        ok={StatusCode.OK: True, StatusCode.ERROR: False}.get(span.status.status_code),
        error=span.status.description,
        attributes=_facts(span.attributes),
        events=[Event(event.name, event.timestamp, _facts(event.attributes)) for event in span.events],
    )


def _facts(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in (attributes or {}).items()}


def _tell(operation: ActiveOperation, record: Operation, read: ExecutionGraph) -> None:
    """End an operation as what was read of its span."""
    recorder = operation.recorder
    assert recorder is not None  # noqa: S101 (it was begun)
    for role, vid in record.inputs:
        variable = read.variables[vid]
        operation.use(role, recorder.make(operation, None, variable.value, variable.name, variable.kind, None, {}))
    for role, vid in record.outputs:
        variable = read.variables[vid]
        operation.output(role, variable.value, name=variable.name, kind=variable.kind)
    operation.annotate(**{name: fact for name, fact in record.attributes.items() if name != _ORIGIN})
    counts = bool(record.calls) and not _was_asked_inside(operation, recorder)
    if counts:
        operation.record_call(
            model=record.model or "",
            prompt_tokens=record.prompt_tokens,
            completion_tokens=record.completion_tokens,
            cost=record.cost,
        )
    settled = operation.settled()
    if settled is not None and (counts or not record.calls):
        settled.kind = record.kind
    operation.end_with(record.error or "error" if record.status == "error" else None)


def _was_asked_inside(operation: ActiveOperation, recorder: RecorderLike) -> bool:
    """Whether calls are recorded inside an operation: its span, as those of agents, tells of these again, or late."""
    with recorder.lock:
        operations = recorder.graph.operations
        for inner in takewhile(lambda record: record.id != operation.id, reversed(operations.values())):
            around = inner.parent if inner.calls else None
            while around in operations and around != operation.id:
                around = operations[around].parent
            if around == operation.id:
                return True
    return False


def follow_spans(instrumentation: Instrumentation) -> None:
    """Record all spans of this process from now on."""
    provider = telemetry.get_tracer_provider()
    if isinstance(provider, telemetry.ProxyTracerProvider):
        provider = TracerProvider()
        telemetry.set_tracer_provider(provider)
    if not isinstance(provider, TracerProvider):
        raise ConfigError(
            f"OpenTelemetry's tracer provider is a {type(provider).__name__}, which takes no span processors; "
            "use opentelemetry.sdk.trace.TracerProvider"
        )
    spans = SpanRecorder()
    provider.add_span_processor(spans)
    instrumentation.callback(spans.close)
    instrumentation.callback(surrounding(spans.scope_here))
    _switch_on(instrumentation, provider)


_SWITCHES: tuple[tuple[str, str, Mapping[str, Any], Mapping[str, Any]], ...] = (
    ("pydantic_ai", "Agent.instrument_all", {}, {"instrument": False}),
    ("agent_framework.observability", "enable_instrumentation", {"enable_sensitive_data": True}, {}),
)
"""Module of a framework that makes spans by itself, its function that has it make them, arguments to begin and end."""

_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""What in the environment has frameworks put messages into their spans."""

_OWN = frozenset(("langchain", "llama_index", "openai", "anthropic", "mcp"))
"""What memtune records by itself, so that OpenInference's instrumentation of it is left off."""


def _switch_on(instrumentation: Instrumentation, provider: TracerProvider) -> None:
    """Have every framework that is installed make spans, with what was said in them."""
    instrumentation.enter_context(environment_with({_CONTENT: "SPAN_ONLY"}))
    for module, path, beginning, ending in _SWITCHES:
        if is_installed(module):
            switch = operator.attrgetter(path)(import_module(module))
            switch(**beginning)
            if ending:
                instrumentation.callback(partial(switch, **ending))
    for entry in entry_points(group="openinference_instrumentor"):
        if entry.name not in _OWN:
            instrumentor = entry.load()()
            instrumentor.instrument(tracer_provider=provider)
            instrumentation.callback(instrumentor.uninstrument)
