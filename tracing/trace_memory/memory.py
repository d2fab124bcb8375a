"""The trace memory of an agent: record what it does, recall it by exact filters, and search it by meaning."""

from __future__ import annotations

import atexit
import os
import sys
import time as clocks
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack

from tracing.errors import ConfigError, DataError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.values import safe_repr
from tracing.recording.redaction import Redaction
from tracing.trace_memory import semantic, upkeep
from tracing.trace_memory.event_filters import SELECTED, Condition, FilterArguments, condition_of
from tracing.trace_memory.event_writer import Writer
from tracing.trace_memory.events import Event, EventType, Time, check_arguments, moment
from tracing.trace_memory.stores import open_storage
from tracing.trace_memory.stores.storage import StoreError, Tenant, event_of, row_of
from tracing.trace_memory.tools import with_calls_recorded
from tracing.trace_memory.upkeep import Problem

_NO_LIMIT = 2**63 - 1
"""The largest number that a store takes."""

P = ParamSpec("P")
R = TypeVar("R")


class EventPlace(TypedDict, total=False):
    """Where an event belongs, if not where the memory says.

    Attributes:
        id: of the event. An id that this process has used already adds nothing.
        time: when it began; by default now.
        project, session, shared: as in `TraceMemory`.
        sync: whether to return only once it is durable.
    """

    id: str
    time: Time
    project: str
    session: str
    shared: bool
    sync: bool


class TraceMemory:
    """An agent's long-term memory of its own execution.

    A write returns at once and is saved in the background. It is acknowledged, and then outlives a kill at any moment,
    once `flush` has returned, or the write itself if `sync`. Every reading method flushes first, so a process reads
    what it wrote. A memory may be used by several threads. Each process that runs needs one of its own.

    Args:
        store: path of a SQLite file, `:memory:`, or a `postgresql://` address (extra `postgres`).
        entity: the user or project that all events belong to; events of other entities are out of reach.
        process: the agent persona. Events of other personas of the entity are seen only if they are shared.
        project, session: labels of the events that are recorded; both may be changed later.
        shared: whether other processes of the entity see what is recorded.
        sync: whether every write returns only once it is durable.
        embedding: for `search`; without one, recall is by filters alone.
        redaction: what is taken out of events before they are stored; None stores them as they are.
        clock: seconds since the epoch.
        new_id: makes the ids of events.

    Raises:
        StoreError: the store cannot be opened.
        ConfigError: a library that the store needs is missing.
        DataError: a name is empty, too long or no text.

    Example:
        >>> with TraceMemory("agent.db", entity="acme", process="planner", session="run-7") as memory:
        ...     call = memory.tool_call("get_quote", {"part": "HX-20"}, {"price": 812})
        ...     decision = memory.decision("supplier", "Halden", confidence=0.8, sync=True)
        ...     [event.key for event in memory.recall(type="decision")]
        ['supplier']
    """

    def __init__(
        self,
        store: str | Path,
        *,
        entity: str,
        process: str = "",
        project: str = "",
        session: str = "",
        shared: bool = False,
        sync: bool = False,
        embedding: semantic.Embedding | None = None,
        redaction: Redaction | None = Redaction(),  # noqa: B008 - immutable
        clock: Callable[[], float] = clocks.time,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self.tenant = Tenant(entity, process)
        self.project, self.session = project, session
        self._shared, self._sync = shared, sync
        self._embedding, self._redaction = embedding, redaction
        self._clock, self._new_id = clock, new_id
        self._storage = open_storage(str(store), self.tenant)
        self._writer = Writer(self._storage.add_events)
        self._opened_by = os.getpid()
        atexit.register(self._end)

    # --- recording ---------------------------------------------------------------------------------------------------

    def tool_call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        result: Any = None,
        *,
        error: str | None = None,
        seconds: float | None = None,
        **place: Unpack[EventPlace],
    ) -> str:
        """Record a call of a tool, and return the event's id.

        Args:
            name: of the tool.
            arguments: by name, JSON-compatible.
            result: JSON-compatible.
            error: what went wrong, instead of a result.
            seconds: how long it took.
            place: see `EventPlace`.

        Raises:
            DataError: something is not JSON-compatible.
            StoreError: it cannot be stored (see `flush`).
        """
        facts = {
            "arguments": dict(arguments or {}),
            "status": "ok" if error is None else "error",
            "seconds": seconds,
        }
        return self._record("tool_call", name, result if error is None else error, facts, place)

    def step(self, name: str, detail: Any = None, *, status: str = "ok", **place: Unpack[EventPlace]) -> str:
        """Record a step of a workflow with its status. Returns and raises as `tool_call`."""
        return self._record("step", name, detail, {"status": status}, place)

    def decision(
        self,
        name: str,
        outcome: Any,
        *,
        confidence: float | None = None,
        reason: str | None = None,
        **place: Unpack[EventPlace],
    ) -> str:
        """Record a decision with its outcome and a confidence from 0 to 1. Returns and raises as `tool_call`."""
        if confidence is not None and not (isinstance(confidence, int | float) and 0 <= confidence <= 1):
            raise DataError(f"confidence: {safe_repr(confidence):.40} is not a number from 0 to 1")
        return self._record("decision", name, outcome, {"confidence": confidence, "reason": reason}, place)

    def message(self, speaker: str, text: str, **place: Unpack[EventPlace]) -> str:
        """Record what somebody said. Returns and raises as `tool_call`."""
        return self._record("message", speaker, text, {}, place)

    def statement(self, subject: str, text: str, *, of: Sequence[str] = (), **place: Unpack[EventPlace]) -> str:
        """Record what was concluded from the events with the ids `of`. Returns and raises as `tool_call`."""
        return self._record("statement", subject, text, {"of": list(of)}, place)

    def tool(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function so that each of its calls is recorded with arguments, result or error, and time.

        A result that is not JSON-compatible is recorded as its `str`.
        """
        return with_calls_recorded(function, self.tool_call, self._clock)

    def add(self, events: Iterable[Event]) -> int:
        """Record events that were made elsewhere, and return how many; those whose id is used already add nothing.

        Entity and process are this memory's. Project, session and the sharing are too, where an event has none.
        """
        count = 0
        for event in events:
            self._put(event)
            count += 1
        return count

    def add_messages(self, messages: Iterable[Any], *, time: Time | None = None) -> int:
        """Record the tool calls and texts of OpenAI messages, and return how many events they are.

        Give the whole list each time: what is stored already adds nothing. A call is recorded once its result is there.

        Raises:
            DataError: something is no message.
        """
        from tracing.trace_memory.openai_messages import events_of_messages

        at = moment(time)
        try:
            events = events_of_messages(messages, self._clock() if at is None else at, self.session)
        except RecursionError:
            raise DataError("a message is nested too deep to be read; give less of it") from None
        return self.add(events)

    def add_graph(self, graph: ExecutionGraph) -> int:
        """Record the operations and messages of an execution graph, and return how many events they are.

        A graph that has grown may be given again.
        """
        from tracing.trace_memory.graph_events import events_of_graph

        return self.add(events_of_graph(graph))

    def add_trace(self, path: str | Path) -> int:
        """Record a trace file of memtune or of OpenTelemetry (OTLP in JSON), or of any tool in docs/interchange.md.

        See `add_graph`.

        Raises:
            TraceError: it is none of these.
        """
        from tracing.interchange import read_graph

        graph, _ = read_graph(Path(path))
        return self.add_graph(graph)

    # --- reading -----------------------------------------------------------------------------------------------------

    def recall(self, *, limit: int | None = 100, **arguments: Unpack[FilterArguments]) -> list[Event]:
        """The newest events that pass the filters (`FilterArguments`), oldest first.

        Raises:
            StoreError: the store cannot be read, or an event is damaged.
            DataError: a filter is malformed.
        """
        self.flush()
        condition, values = self._condition(arguments)
        # Those of one time are in the order of their arrival.
        query = f"SELECT {SELECTED} FROM events e WHERE {condition} ORDER BY e.time DESC, e.number DESC"
        query, values = f"{query} LIMIT ?", [*values, _checked_limit(limit)]
        return [event_of(row) for row in reversed(self._storage.read(query, values))]

    def search(self, text: str, *, limit: int | None = 10, **arguments: Unpack[FilterArguments]) -> list[Event]:
        """The events whose content is nearest to `text` in meaning, nearest first, among those that pass the filters.

        Events that have no vector yet get one first. Every vector that the filters admit is compared.

        Raises:
            ConfigError: the memory has no embedding, or numpy is missing.
            StoreError, DataError: as `recall`.
        """
        if self._embedding is None:
            raise ConfigError("this trace memory has no embedding; give it one: TraceMemory(…, embedding=…)")
        if not isinstance(text, str):
            raise DataError(f"text: {safe_repr(text):.40} is not a text; give what to search for")
        self.flush()
        condition = self._condition(arguments)
        return semantic.nearest(self._storage, self._embedding, text, condition, _checked_limit(limit))

    def _condition(self, arguments: FilterArguments) -> Condition:
        return condition_of(arguments, project=self.project, session=self.session, like=self._storage.like)

    # --- upkeep ------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Wait until everything that was recorded before is durable.

        Raises:
            StoreError: it cannot be stored. The events are kept, and the next `flush` tries again.
        """
        self._require_own_process()
        self._writer.flush()

    def check(self) -> list[Problem]:
        """What is wrong with the store and with the events in reach; empty if nothing is."""
        self.flush()
        return upkeep.check(self._storage)

    def repair(self) -> list[Problem]:
        """Mend what `check` finds and return what that was; nothing that can still be read is lost.

        An event of this process that cannot be read keeps its raw text, with the type `damaged`.

        Raises:
            StoreError: the store is damaged beyond its indexes; names the remedy.
        """
        self.flush()
        return upkeep.repair(self._storage, self.tenant.process)

    def close(self) -> None:
        """Flush, and end the use of the store.

        Raises:
            StoreError: what was recorded last could not be stored, and is lost.
        """
        atexit.unregister(self._end)
        if os.getpid() != self._opened_by:
            return
        try:
            self._writer.close()
        finally:
            self._storage.close()

    def __enter__(self) -> TraceMemory:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _end(self) -> None:
        """Close at the end of the program, which must not end in a traceback."""
        try:
            self.close()
        except StoreError as error:
            sys.stderr.write(f"memtune: {error}\n")

    def _record(self, kind: EventType, key: str, value: Any, facts: Mapping[str, Any], place: EventPlace) -> str:
        check_arguments(place, EventPlace, "argument")
        at = moment(place.get("time"))
        event = Event(
            id=place["id"] if "id" in place else self._new_id(),
            type=kind,
            key=key,
            value=value,
            metadata={name: fact for name, fact in facts.items() if fact is not None},
            time=self._clock() if at is None else at,
            project=place.get("project", ""),
            session=place.get("session", ""),
            shared=place.get("shared", False),
        )
        self._put(event)
        if place.get("sync", self._sync):
            self.flush()
        return event.id

    def _put(self, event: Event) -> None:
        self._require_own_process()
        placed = replace(
            event,
            project=event.project or self.project,
            session=event.session or self.session,
            shared=event.shared or self._shared,
        )
        self._writer.put(row_of(placed, self._redaction))

    def _require_own_process(self) -> None:
        if os.getpid() != self._opened_by:
            raise StoreError("this trace memory was opened before a fork; open one in each process")


def _checked_limit(limit: int | None) -> int:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise DataError(f"limit: {safe_repr(limit):.40} is not a count; give at least 1, or None for all")
    return _NO_LIMIT if limit is None else min(limit, _NO_LIMIT)
