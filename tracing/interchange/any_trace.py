"""Reading a trace of any kind that is recognised by its content: ours, smartcomment's, OpenTelemetry's or MLflow's."""

from __future__ import annotations

from pathlib import Path

from tracing.files.file_kinds import SMARTCOMMENT, TRACE, kind_of
from tracing.files.loading import load_trace
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import FORMATS, format_named


def is_trace(path: Path) -> bool:
    """Whether a file begins as a trace of one of these kinds; what begins as nothing known may be a damaged one."""
    kind = kind_of(path)
    return kind is None or kind.name in (*FORMATS, TRACE, "broken", "json")


def read_graph(path: Path) -> tuple[ExecutionGraph, str | None]:
    """The graph of a trace file, and what is wrong with the file.

    Raises:
        TraceError: it cannot be read as any of the four; the message says what it looks like.
    """
    kind = kind_of(path)
    name = kind.name if kind is not None else ""
    if name in ("json", "broken") and path.suffix == ".json":
        name = SMARTCOMMENT  # whose reader says best what is wrong with it
    if name in FORMATS:
        return format_named(name).read(path).graph, None
    loaded = load_trace(path)
    return loaded.graph, loaded.problem
