"""The figures of `python -m benchmarks tracing`, and the bars they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time

from pydantic import BaseModel

REPETITIONS = 7
Work = Callable[[int], None]
"""Does a thing so many times."""


class RecordFigures(BaseModel):
    """Microseconds for one operation with one input and one output of 200 characters, by the depth of the stack."""

    depth0: float
    depth20: float
    depth60: float


class NativeFigures(BaseModel):
    """A trace file of a million variables: seconds to load it, MiB the process held at most, ms for a slice.

    And, measured by turns with the slice in one process, the microseconds that recording one operation takes.
    """

    load_s: float
    rss_mib: float
    slice_10k_ms: float
    record_us: float


class TracingFigures(BaseModel):
    """Medians over repetitions of one run; times in microseconds a call unless the name says otherwise.

    Loading and slices are measured in processor time, so that other programs do not count.

    Attributes:
        record_us: recording in memory, immutable values.
        mutable_us: the same with a list of messages in and a list of texts out, which are copied.
        durable_us: `record_us.depth0` into a file, sustained: processor time of the recording thread and the writer.
        otel_span_us: the same for an OpenTelemetry SDK span with the same two values and a batch processor.
        mlflow_span_us: the same for an MLflow span with the same two values.
        disabled_us: what `traced` adds to a call where nothing is recorded.
        load_smartcomment_40k_s: seconds to load a smartcomment file of 40,000 nodes.
        native_1m: a native trace of 1,000,000 variables and 250,000 operations.
        growth_exponent: of the time to load, from 10⁴ to 10⁶ variables; 1 is linear.
        json_loads_40k_s: seconds that the standard `json.loads` takes for the same smartcomment file.
        json_loads_1m_s: the same for the lines of the native trace, one by one.
    """

    record_us: RecordFigures
    mutable_us: float
    durable_us: float
    otel_span_us: float
    mlflow_span_us: float
    disabled_us: float
    load_smartcomment_40k_s: float
    native_1m: NativeFigures
    growth_exponent: float
    json_loads_40k_s: float
    json_loads_1m_s: float


@dataclass(frozen=True, slots=True)
class Bar:
    """The limit of a figure, and whether it is met."""

    figure: str
    measured: float
    limit: float

    @property
    def met(self) -> bool:
        return self.measured <= self.limit


def bars(figures: TracingFigures) -> list[Bar]:
    """Every bar."""
    record, native = figures.record_us, figures.native_1m
    return [
        *(Bar(f"record_us.{depth}", value, 6.0) for depth, value in record),
        Bar("durable_us (≤ OpenTelemetry)", figures.durable_us, figures.otel_span_us),
        Bar("durable_us (≤ MLflow / 20)", figures.durable_us, figures.mlflow_span_us / 20),
        Bar("disabled_us", figures.disabled_us, 0.3),
        Bar("load_smartcomment_40k_s", figures.load_smartcomment_40k_s, 0.6),
        Bar("native_1m.load_s", native.load_s, 8.0),
        Bar("native_1m.rss_mib", native.rss_mib, 2048.0),
        Bar("native_1m.slice_10k_ms", native.slice_10k_ms, 20.0),
        Bar("growth_exponent", figures.growth_exponent, 1.1),
        Bar(
            "load_smartcomment_40k_s / json_loads_40k_s",
            figures.load_smartcomment_40k_s / figures.json_loads_40k_s,
            0.6,
        ),
        Bar("native_1m.load_s / json_loads_1m_s", native.load_s / figures.json_loads_1m_s, 0.6),
        Bar("native_1m.slice_10k_ms / native_1m.record_us", native.slice_10k_ms * 1e3 / native.record_us, 5000.0),
    ]


def microseconds(work: Work, times: int) -> float:
    """Of one call in a loop of `times`."""
    begun = perf_counter()
    work(times)
    return (perf_counter() - begun) / times * 1e6


def processor_microseconds(work: Work, times: int) -> float:
    """Of one call, in time of processors: what threads in the background do meanwhile counts, other programs do not."""
    begun = process_time()
    work(times)
    return (process_time() - begun) / times * 1e6


def typical_microseconds(work: Work, times: int) -> float:
    """Of one call, by the median of twenty slices: too short, most of them, for other programs to take their turn."""
    size = max(1, times // 20)
    return median(microseconds(work, size) for _ in range(20))


def medians(measured: Sequence[dict[str, float]]) -> dict[str, float]:
    """Key by key."""
    return {key: median(figures[key] for figures in measured) for key in measured[0]}
