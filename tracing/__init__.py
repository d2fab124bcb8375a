"""What happened: the execution graph of an LLM memory system, recorded while it runs and kept in a durable file.

recording, instrument   record a program, your own code or libraries that it uses
graph, files            what was recorded: queries on it, and the file that keeps it
interchange             traces of other tools in and out
trace_memory            an agent's execution as its own memory
llm, systems            access to models, and the memory systems under test; imported on their own
"""

from tracing.errors import MemtuneError, TraceError
from tracing.files.loading import LoadedTrace, graph_of, load_trace
from tracing.files.trace_file import records_of, save_trace
from tracing.graph.elements import Operation, Session, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.graph_comparison import Comparison, OperationDifference, compare, version_diff
from tracing.graph.operation_filter import Filter
from tracing.graph.search import Match, search
from tracing.recording.operations import ActiveOperation, change, link, operation, traced
from tracing.recording.processes import hand_over, take_over
from tracing.recording.recorder import Recorder, current_operation, current_recorder
from tracing.recording.redaction import Redaction
from tracing.recording.scope import bind, paused
from tracing.recording.trace_context import answered, attributes, session, trace, variable

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
    "answered",
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
