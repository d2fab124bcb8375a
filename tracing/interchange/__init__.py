"""Import and export of other tools' traces: smartcomment (and MemTraceBench), OpenTelemetry (OTLP) and MLflow.

Each format is a module with the same three functions, so that a fourth needs only a line here:

    read(path)          -> Imported(graph, warnings)    what could be read, and what was repaired
    load(path)          -> ExecutionGraph               the graph alone
    write(graph, path)                                  a new file in that format

A graph that is written and read again is the same; `tests/graph_exchange.py` checks that. `read_graph` reads a trace
of any kind that is recognised by its content, ours among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from tracing.files.file_kinds import SMARTCOMMENT, TRACE, kind_of
from tracing.files.loading import load_trace
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.agent_memory import interpreted
from tracing.interchange.documents import Imported

__all__ = ["FORMATS", "Format", "Imported", "format_named", "is_trace", "read_graph", "read_memory"]

FORMATS: Mapping[str, str] = {
    "smartcomment": "tracing.interchange.smartcomment",
    "otlp": "tracing.interchange.otlp",
    "mlflow": "tracing.interchange.mlflow_traces",
}
"""Name of a format → the module that reads and writes it."""


class Format(Protocol):
    """A module that reads and writes the traces of another tool."""

    def read(self, path: Path) -> Imported:
        """The graph in a file and what was repaired.

        Raises:
            TraceError: the file cannot be read as this format at all.
        """

    def load(self, path: Path) -> ExecutionGraph:
        """The graph in a file."""

    def write(self, graph: ExecutionGraph, path: Path) -> None:
        """Write a graph as a new file. Raises TraceError: the file exists, or cannot be written."""


def format_named(name: str) -> Format:
    """The format of this name (a key of FORMATS), imported on first use."""
    return cast(Format, import_module(FORMATS[name]))


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


def read_memory(path: Path) -> tuple[ExecutionGraph, str | None]:
    """As `read_graph`; of a trace of an agent that memtune did not record, the graph of its memory."""
    graph, problem = read_graph(path)
    return interpreted(graph), problem
