"""What is being recorded in the present context: the one piece of global state, a context variable."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from contextvars import ContextVar, Token, copy_context
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

if TYPE_CHECKING:
    from tracing.operations import ActiveOperation
    from tracing.recorder import Recorder

P = ParamSpec("P")
R = TypeVar("R")


class Scope(NamedTuple):
    """The recorder, the innermost running operation and the id of the innermost session."""

    recorder: Recorder | None = None
    operation: ActiveOperation | None = None
    session: str | None = None


SILENCE = Scope()
current: ContextVar[Scope] = ContextVar("memtune_scope", default=SILENCE)

if hasattr(os, "register_at_fork"):
    # A forked child would write into its parent's file and use the same ids again.
    os.register_at_fork(after_in_child=lambda: current.set(SILENCE))


def leave(token: Token[Scope]) -> None:
    """Return to the scope before; in a foreign context (an async generator closed elsewhere) there is none."""
    with contextlib.suppress(ValueError):
        current.reset(token)


def bind(function: Callable[P, R]) -> Callable[P, R]:
    """`function` with the present context, for a thread: what `pool.map(bind(work), items)` records belongs here."""
    context = copy_context()

    @functools.wraps(function)
    def bound(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)  # one context cannot be entered by two threads at once

    return bound
