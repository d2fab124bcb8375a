"""LangGraph's long-term memory, recorded: what is put into a store, found in it and deleted from it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph.store.memory import InMemoryStore

from tracing.instrument.library_memories import deleted, searching, writing, written
from tracing.instrument.patches import Instrumentation, ResultHandler, recorded
from tracing.instrument.program_steps import step_here
from tracing.recording.recorder import Recorder


def record_stores(instrumentation: Instrumentation) -> None:
    """Record every store, present and future, until the instrumentation is undone.

    The methods that these replace call one another in the ones left out, so that nothing is recorded twice.
    """
    for name, around in (("put", _putting), ("search", _searching), ("get", _getting), ("delete", _deleting)):
        instrumentation.replace(BaseStore, name, recorded(around))
        for owner in (BaseStore, AsyncBatchedBaseStore):
            instrumentation.replace(owner, f"a{name}", recorded(around))


@contextmanager
def _putting(
    recorder: Recorder, store: Any, namespace: tuple[str, ...], key: str, value: Any, *args: Any, **kwargs: Any
) -> Iterator[ResultHandler]:
    with writing(recorder, step_here(), value) as op:

        def on_result(_: Any) -> None:
            written(recorder, op, _key(store, namespace, key), _name(namespace, key), value)

        yield on_result


@contextmanager
def _deleting(recorder: Recorder, store: Any, namespace: tuple[str, ...], key: str) -> Iterator[ResultHandler]:
    with writing(recorder, step_here(), None) as op:
        yield lambda _: deleted(recorder, op, _key(store, namespace, key), _name(namespace, key))


@contextmanager
def _searching(
    recorder: Recorder, store: Any, namespace_prefix: tuple[str, ...], *, query: str | None = None, **kwargs: Any
) -> Iterator[ResultHandler]:
    with searching(recorder, step_here(), query) as search:

        def on_result(items: Any) -> None:
            for item in items:
                key, name = _key(store, item.namespace, item.key), _name(item.namespace, item.key)
                search.add_result(key, name, item.value, score=item.score)

        yield on_result


@contextmanager
def _getting(
    recorder: Recorder, store: Any, namespace: tuple[str, ...], key: str, **kwargs: Any
) -> Iterator[ResultHandler]:
    with searching(recorder, step_here(), None) as search:

        def on_result(item: Any) -> None:
            if item is not None:
                search.add_result(_key(store, namespace, key), _name(namespace, key), item.value)

        yield on_result


_LIVING: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
_NUMBERS = itertools.count()


def _key(store: Any, namespace: tuple[str, ...], key: str) -> tuple[Any, ...]:
    """One that lives in memory is itself; others are opened anew at will, and hold the same."""
    store_name = _LIVING.setdefault(store, next(_NUMBERS)) if isinstance(store, InMemoryStore) else type(store).__name__
    return ("item", store_name, tuple(namespace), str(key))


def _name(namespace: tuple[str, ...], key: str) -> str:
    return "/".join((*map(str, namespace), str(key)))
