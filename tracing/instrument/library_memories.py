"""What a library's memory holds, as variables: written, found again, overwritten and deleted under one key."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tracing.graph.elements import Variable
from tracing.graph.values import snapshot
from tracing.instrument.program_steps import Link, Step, begun, executed, recalled, registry_of, strings_in
from tracing.recording.operations import ActiveOperation
from tracing.recording.recorder import Recorder, current_recorder
from tracing.recording.scope import current
from tracing.recording.trace_context import variable
from tracing.temporary_values import context_with


class Search:
    """A search under way: what it finds are contexts, each made from the entry that it shows."""

    def __init__(self, recorder: Recorder, op: ActiveOperation, step: Step | None) -> None:
        self.recorder, self._op, self._step = recorder, op, step
        self._count = 0
        _SEARCH.set(weakref.ref(self))

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._op.ended is not None

    def end(self, error: BaseException | None = None) -> None:
        """It is over."""
        self._op.end(error)

    def add_result(self, key: Hashable, name: str, value: Any, *, score: float | None = None) -> Variable:
        """One of its results, in order; returns the context."""
        self._count += 1
        entry = entry_of(self.recorder, key, name, value)
        self._op.use("entries", entry)
        facts: dict[str, Any] = {"entry": entry.id, "rank": self._count}
        if score is not None:
            facts["score"] = score
        return self.add_context(name, value, **facts)

    def used(self, entry: Variable) -> None:
        """An entry that a result shows together with others."""
        self._op.use("entries", entry)

    def add_context(self, name: str, value: Any, **facts: Any) -> Variable:
        """A result that is no single entry."""
        context = self._op.output("context", value, name=name, kind="context", **facts)
        if self._step is not None:
            self._step.contexts.append(context)
        return context


_SEARCH: ContextVar[weakref.ref[Search] | None] = ContextVar("memtune_memory_search", default=None)
"""The last search in this context. It may end in another, so nobody takes it back, and it is held weakly."""

_WRITING: ContextVar[bool] = ContextVar("memtune_memory_writing", default=False)


def is_at_work() -> bool:
    """Whether a memory is being searched or written here."""
    reference = _SEARCH.get()
    search = reference() if reference is not None else None
    searches = search is not None and not search.over and search.recorder is current_recorder()
    return searches or _WRITING.get()


def begin_search(recorder: Recorder, step: Step | None, query: str) -> Search:
    """`retrieve`, of which a library says when it begins and ends."""
    queries = [("query", variable(query, name="query", kind="query"))]
    op = begun("retrieve", "retrieval", step.scope if step is not None else current.get(), queries)
    return Search(recorder, op, step)


@contextmanager
def searching(recorder: Recorder, step: Step | None, query: str | None, links: Sequence[Link] = ()) -> Iterator[Search]:
    """`retrieve`, around the search of a memory."""
    queries = [("query", variable(query, name="query", kind="query"))] if query else []
    with executed("retrieve", "retrieval", step, [*queries, *links]) as op:
        yield Search(recorder, op, step)


@contextmanager
def writing(recorder: Recorder, step: Step | None, value: Any) -> Iterator[ActiveOperation]:
    """`store`, around a write: its inputs are what the value was made of, as far as anyone can tell."""
    facts = [("fact", origin) for origin in origins_of(recorder, step, value)]
    with executed("store", "memory", step, facts) as op, context_with(_WRITING, True):
        yield op


def written(recorder: Recorder, op: ActiveOperation, key: Hashable, name: str, value: Any) -> Variable:
    """A value was written under a key; returns the entry, a new version of what was there."""
    registry = registry_of(recorder)
    entry = op.output("entry", value, name=name, kind="memory_entry", previous=registry.by_key.get(key))
    return registry.keep(entry, key=key)


def deleted(recorder: Recorder, op: ActiveOperation, key: Hashable, name: str) -> None:
    """What was under a key was deleted."""
    before = registry_of(recorder).by_key.pop(key, None)
    op.output("entry", None, name=name, kind="delete_marker", previous=before)


def entry_of(recorder: Recorder, key: Hashable, name: str, value: Any) -> Variable:
    """The entry under a key: the known one, a version of that if it changed unseen, or one from before the trace."""
    registry = registry_of(recorder)
    before = registry.by_key.get(key)
    if before is not None and before.value == recorder.redaction.value(snapshot(value)):
        return before
    return registry.keep(variable(value, name=name, kind="memory_entry", previous=before), key=key)


def origins_of(recorder: Recorder, step: Step | None, value: Any) -> list[Variable]:
    """The recorded texts that a value has, as objects; where it has none, what its step has."""
    texts = (recalled(recorder, text) for text in strings_in(value))
    origins = {origin.id: origin for origin in texts if origin is not None}
    return list(origins.values()) or (step.origins() if step is not None else [])
