"""Import and export of other tools' traces: smartcomment (and MemTraceBench), OpenTelemetry (OTLP) and MLflow.

Each format is a module with the same three functions, so that a fourth needs only a line here:

    read(path)          -> Imported(graph, warnings)    what could be read, and what was repaired
    load(path)          -> ExecutionGraph               the graph alone
    write(graph, path)                                  a new file in that format

A graph that is written and read again is the same; `tracing.interchange.conformance` checks that.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import Imported

__all__ = ["FORMATS", "Format", "Imported", "format_named"]

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
        ...

    def load(self, path: Path) -> ExecutionGraph:
        """The graph in a file."""
        ...

    def write(self, graph: ExecutionGraph, path: Path) -> None:
        """Write a graph as a new file.

        Raises:
            TraceError: the file exists, or cannot be written.
        """
        ...


def format_named(name: str) -> Format:
    """The format of this name (a key of FORMATS), imported on first use."""
    return cast(Format, import_module(FORMATS[name]))
