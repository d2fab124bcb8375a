"""The cost of recording, compared with other tracers."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from pathlib import Path
from time import time

from benchmarks.figures import REPETITIONS, Work, medians, processor_microseconds, typical_microseconds
from tracing import operation, trace, traced

CALLS = 1000
"""Operations a repetition."""

SUSTAINED = 10
"""Times as many where a thread of the recorder works behind, so that its queue fills and its work is in the figure."""

GIVEN, MADE = "What did Mara say about the ferry? " * 5, "Her ferry to Senja leaves at nine. " * 5
MESSAGES = [{"role": "user", "content": GIVEN}, {"role": "assistant", "content": MADE}, {"role": "user", "content": ""}]
FACTS = ["The ferry leaves at nine.", "It goes to Senja.", "Mara takes it."]

Bench = Callable[[], AbstractContextManager[Work]]
"""Opens what a measurement needs and gives the work to be timed."""


def measure_recording(
    folder: Path, progress: Callable[[str], None], *, calls: int = CALLS, repetitions: int = REPETITIONS
) -> dict[str, float]:
    """Medians in microseconds, all measured in turns, so that what else the machine does hits them alike."""
    progress("opening OpenTelemetry and MLflow")
    with open_telemetry() as otel, ml_flow(folder / "mlflow") as mlflow:
        # The collector would walk through the libraries of one tool while another is measured.
        gc.collect()
        gc.freeze()
        measured = []
        for number in range(repetitions):
            progress(f"recording, repetition {number + 1} of {repetitions}")
            one = {f"depth{depth}": _at_depth(depth, lambda: in_memory(calls)) for depth in (0, 20, 60)}
            one["floor"] = floor(calls)
            one["mutable"] = mutable(calls)
            one["durable"] = durable(folder / f"{number}.jsonl", calls * SUSTAINED)
            one["otel"] = processor_microseconds(otel, calls * SUSTAINED)
            one["mlflow"] = processor_microseconds(mlflow, max(1, calls // 10))
            one["disabled"] = disabled(calls * 10)
            measured.append(one)
        gc.unfreeze()
    return medians(measured)


def in_memory(calls: int) -> float:
    """An operation with an immutable input and output, in memory."""
    with trace():
        return typical_microseconds(_record, calls)


class _Noted:
    """The least that a context manager in Python can do to tell when a step ran, in what context, and with what."""

    __slots__ = ("begun", "given", "log", "made", "token")
    around: ContextVar[object] = ContextVar("memtune_bench", default=None)

    def __init__(self, log: list[object], given: dict[str, str]) -> None:
        self.log, self.given = log, given

    def __enter__(self) -> _Noted:
        self.begun = time()
        self.log.append((self, [(role, value) for role, value in self.given.items()]))
        self.token = self.around.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        self.around.reset(self.token)
        self.log.append((self, time()))


def floor(calls: int) -> float:
    """A lower bound for any recorder written in Python."""
    log: list[object] = []

    def note(times: int) -> None:
        for _ in range(times):
            with _Noted(log, {"text": GIVEN}) as noted:
                log.append((noted, "result", MADE))

    return typical_microseconds(note, calls)


def mutable(calls: int) -> float:
    """An operation whose input and output can change, so that they are copied at once."""

    def record(times: int) -> None:
        for _ in range(times):
            with operation("step", inputs={"messages": MESSAGES}) as op:
                op.output("facts", FACTS)

    with trace():
        return typical_microseconds(record, calls)


def durable(path: Path, calls: int) -> float:
    """As `in_memory`, into a file, until all is written."""
    with trace(path) as recorder:

        def record(times: int) -> None:
            _record(times)
            recorder.flush()

        return processor_microseconds(record, calls)


def disabled(calls: int) -> float:
    """How much longer a decorated call takes than a plain one if nothing is recorded."""

    def plain(text: str) -> str:
        return text

    decorated = traced()(plain)

    def call(times: int) -> None:
        for _ in range(times):
            decorated(GIVEN)

    def call_plainly(times: int) -> None:
        for _ in range(times):
            plain(GIVEN)

    return max(0.0, typical_microseconds(call, calls) - typical_microseconds(call_plainly, calls))


@contextlib.contextmanager
def open_telemetry() -> Iterator[Work]:
    """A span of the SDK, with a batch processor whose exporter does nothing."""
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Nowhere(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracer = provider.get_tracer("memtune-bench")

    def record(times: int) -> None:
        for _ in range(times):
            with tracer.start_as_current_span("step", attributes={"input": GIVEN}) as span:
                span.set_attribute("output", MADE)

    try:
        yield record
    finally:
        provider.shutdown()


@contextlib.contextmanager
def ml_flow(folder: Path) -> Iterator[Work]:
    """A span inside a running trace of MLflow; storing the trace is not in it."""
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder.absolute()}.db")
    mlflow.set_experiment("bench")

    def record(times: int) -> None:
        with mlflow.start_span("root"):
            for _ in range(times):
                with mlflow.start_span("step") as span:
                    span.set_inputs({"text": GIVEN})
                    span.set_outputs(MADE)

    try:
        record(1)
        yield record
    finally:
        mlflow.flush_trace_async_logging(terminate=True)
        mlflow.set_tracking_uri(before)


def _record(times: int) -> None:
    for _ in range(times):
        with operation("step", inputs={"text": GIVEN}) as op:
            op.output("result", MADE)


def _at_depth(depth: int, measure: Callable[[], float]) -> float:
    return measure() if depth == 0 else _at_depth(depth - 1, measure)
