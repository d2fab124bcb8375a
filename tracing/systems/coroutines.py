"""Methods of memory systems that are `async def`: run to their end for callers that are not.

All run on one event loop, which lives as long as the process. A client that a system keeps belongs to the loop in which
it was first used; a loop for each call would leave it with closed ones.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from contextvars import Context, copy_context
from typing import Any, TypeVar

from tracing.llm.http.event_loop import EventLoop

T = TypeVar("T")

_LOOP = EventLoop()


def settled(result: Any) -> Any:
    """What a method returned, or what the coroutine that it returned does; recorded where this is called.

    Raises:
        Exception: whatever the coroutine raises.
    """
    if not inspect.iscoroutine(result):
        return result
    future = _LOOP.start(_within, result, copy_context())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # the caller was interrupted
        raise


async def _within(work: Coroutine[Any, Any, T], context: Context) -> T:
    return await asyncio.get_running_loop().create_task(work, context=context)
