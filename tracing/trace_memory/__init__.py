"""Trace-to-memory: an agent's tool calls, steps, decisions and messages as a long-term memory that it can recall from.

memory                          the API: record, recall, search, check and repair
events event_filters            what is stored, and what is asked for
stores                          a store of one tenant, which enforces that no other is seen: SQLite or Postgres
event_writer semantic upkeep    writes in the background, search by meaning (also without a server), consistency
tools                           a function whose calls are recorded
graph_events                    events of our traces and of OpenTelemetry spans
openai_messages                 events of OpenAI messages

It needs neither model access nor a memory system. `experiments.systems.trace_memory` makes a memory system of it.
"""

from tracing.trace_memory.events import Event, EventType
from tracing.trace_memory.memory import TraceMemory
from tracing.trace_memory.stores.storage import StoreError
from tracing.trace_memory.upkeep import Problem

__all__ = ["Event", "EventType", "Problem", "StoreError", "TraceMemory"]
