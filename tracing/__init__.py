"""What happened: the execution graph of an LLM memory system, recorded while it runs and kept in a durable file.

Recording needs nothing but the standard library; `tracing.llm` and `tracing.systems` are imported on their own.
"""

from tracing.changes import change, link
from tracing.comparison import Comparison, OperationDifference, compare, version_diff
from tracing.decorator import traced
from tracing.elements import Operation, Session, Variable
from tracing.errors import MemtuneError, TraceError
from tracing.filters import Filter
from tracing.graph import ExecutionGraph
from tracing.handover import hand_over, take_over
from tracing.loading import LoadedTrace, graph_of, load_trace
from tracing.recorder import (
    ActiveOperation,
    Recorder,
    attributes,
    bind,
    current_operation,
    current_recorder,
    operation,
    session,
    trace,
    variable,
)
from tracing.redaction import Redaction
from tracing.scope import paused
from tracing.search import Match, search
from tracing.store import records_of, save_trace

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
    "Redaction",
    "Session",
    "TraceError",
    "Variable",
    "attributes",
    "bind",
    "change",
    "compare",
    "current_operation",
    "current_recorder",
    "graph_of",
    "hand_over",
    "link",
    "load_trace",
    "operation",
    "paused",
    "records_of",
    "save_trace",
    "search",
    "session",
    "take_over",
    "trace",
    "traced",
    "variable",
    "version_diff",
]
