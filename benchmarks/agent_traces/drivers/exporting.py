"""The spans of a program in a file, by OpenTelemetry's own exporter; and what memtune's recording is told beside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.agent_traces.turns import Turn


def exported_to(path: Path) -> Any:
    """A tracer provider, also the program's, whose spans get into this file as they end."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(path)))
    trace.set_tracer_provider(provider)
    return provider


def in_sessions(turns: Iterable[Turn], door: str) -> Iterator[Turn]:
    """The turns one by one, each within a session of memtune's where that records."""
    for turn in turns:
        if door == "recorded":
            from tracing import session

            with session(turn.session, user=turn.by):
                yield turn
        else:
            yield turn
