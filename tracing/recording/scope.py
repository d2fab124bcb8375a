"""What is being recorded in the present context: the one piece of global state, a context variable."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar, Token, copy_context
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from tracing.recording.operations import ActiveOperation
    from tracing.recording.recorder import Recorder

P = ParamSpec("P")
R = TypeVar("R")
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Scope:
    """The recorder, the innermost running operation, the id of the innermost session, and inherited attributes.

    An operation that runs is a scope itself, so that entering one makes one object.
    """

    __slots__ = ("_operation", "inherited", "recorder", "session")

    def __init__(
        self,
        recorder: Recorder | None = None,
        operation: ActiveOperation | None = None,
        session: str | None = None,
        inherited: Mapping[str, Any] = NOTHING,
    ) -> None:
        self.recorder, self._operation, self.session, self.inherited = recorder, operation, session, inherited

    @property
    def operation(self) -> ActiveOperation | None:
        return self._operation


SILENCE = Scope()
current: ContextVar[Scope] = ContextVar("memtune_scope", default=SILENCE)

if hasattr(os, "register_at_fork"):
    # A forked child would write into its parent's file and use the same ids again.
    os.register_at_fork(after_in_child=lambda: current.set(SILENCE))


def leave(scope: Scope, token: Token[Scope]) -> None:
    """Return from `scope`, and from what is still open inside it, to the one before it.

    Nothing happens where another trace has been entered since, as over the `yield` of a generator that holds an
    operation open, and in a foreign context (an async generator closed elsewhere), which has none before it.
    """
    if current.get().recorder is scope.recorder:
        try:  # noqa: SIM105 (on the path of every operation, and some ten times faster)
            current.reset(token)
        except ValueError:
            pass


@contextlib.contextmanager
def within(scope: Scope) -> Iterator[None]:
    """Make this the present scope for a while."""
    token = current.set(scope)
    try:
        yield
    finally:
        leave(scope, token)


def paused() -> contextlib.AbstractContextManager[None]:
    """`with paused():` records nothing of what happens inside, in whatever task or bound thread."""
    return within(SILENCE)


def bind(function: Callable[P, R]) -> Callable[P, R]:
    """`function` with the present context, for a thread: what `pool.map(bind(work), items)` records belongs here."""
    context = copy_context()

    @functools.wraps(function)
    def bound(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)  # one context cannot be entered by two threads at once

    return bound
