"""What happened: the execution graph of an LLM memory system, recorded while it runs and kept in a durable file.

Recording needs nothing but the standard library; `tracing.llm` and `tracing.systems` are imported on their own.
"""

from tracing.comparison import Comparison, OperationDifference, compare, version_diff
from tracing.elements import Operation, Session, Variable
from tracing.errors import MemtuneError, TraceError
from tracing.filters import Filter
from tracing.graph import ExecutionGraph
from tracing.loading import LoadedTrace, graph_of, load_trace
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
from tracing.search import Match, search
from tracing.store import records_of

__all__ = [
    "ActiveOperation",
    "Comparison",
    "ExecutionGraph",
    "Filter",
    "LoadedTrace",
    "Match",
    "MemtuneError",
    "Operation",
    "OperationDifference",
    "Recorder",
    "Session",
    "TraceError",
    "Variable",
    "bind",
    "compare",
    "current_operation",
    "current_recorder",
    "graph_of",
    "load_trace",
    "operation",
    "records_of",
    "search",
    "session",
    "trace",
    "traced",
    "variable",
    "version_diff",
]
