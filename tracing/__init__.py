"""What happened: the execution graph of an LLM memory system, recorded while it runs and kept in a durable file.

Recording needs nothing but the standard library; `tracing.llm` and `tracing.systems` are imported on their own.
"""

from tracing.changes import change, link
from tracing.decorator import traced
from tracing.elements import Operation, Session, Variable
from tracing.errors import MemtuneError, TraceError
from tracing.graph import ExecutionGraph
from tracing.handover import hand_over, take_over
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
from tracing.store import LoadedTrace, graph_of, load_trace, records_of, save_trace

__all__ = [
    "ActiveOperation",
    "ExecutionGraph",
    "LoadedTrace",
    "MemtuneError",
    "Operation",
    "Recorder",
    "Redaction",
    "Session",
    "TraceError",
    "Variable",
    "attributes",
    "bind",
    "change",
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
    "session",
    "take_over",
    "trace",
    "traced",
    "variable",
]
