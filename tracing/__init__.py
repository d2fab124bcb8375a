"""What happened: the execution graph of an LLM memory system, recorded while it runs and kept in a durable file.

Recording needs nothing but the standard library; `tracing.llm` and `tracing.systems` are imported on their own.
"""

from tracing.elements import Operation, Session, Variable
from tracing.errors import MemtuneError, TraceError
from tracing.graph import ExecutionGraph
from tracing.recorder import (
    ActiveOperation,
    Recorder,
    bind,
    current_operation,
    current_recorder,
    operation,
    session,
    trace,
    traced,
    variable,
)
from tracing.store import LoadedTrace, graph_of, load_trace, records_of, save_trace

__all__ = [
    "ActiveOperation",
    "ExecutionGraph",
    "LoadedTrace",
    "MemtuneError",
    "Operation",
    "Recorder",
    "Session",
    "TraceError",
    "Variable",
    "bind",
    "current_operation",
    "current_recorder",
    "graph_of",
    "load_trace",
    "operation",
    "records_of",
    "save_trace",
    "session",
    "trace",
    "traced",
    "variable",
]
