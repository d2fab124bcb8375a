"""What a step that another process does has asked for, so that the step can begin again without paying twice."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context

from tracing.errors import MemtuneError, in_one_line
from tracing.llm.forwarding.forwarded_calls import unmade

DEATHS = 3
"""Workers that may die during one step before it counts as failed."""


class RepeatableStep:
    """The requests of one step. An attempt after the first gets the answers of those before it, without a second call.

    So a step that several workers began is counted as if one had done it.

    Args:
        answer: answers a request; it is called in the context of whoever made this.
    """

    def __init__(self, answer: Callable[..., str]) -> None:
        self._answer, self._context = answer, copy_context()
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, ...], deque[Future[str]]] = defaultdict(deque)
        self._before: dict[tuple[str, ...], deque[Future[str]]] = defaultdict(deque)

    def begin(self) -> None:
        """Another attempt begins."""
        with self._lock:
            for request, answers in self._asked.items():
                self._before[request].extendleft(reversed(answers))
            self._asked.clear()

    def answer(self, *request: str) -> str:
        """The answer to a request."""
        with self._lock:
            earlier = self._before[request]
            answer = earlier.popleft() if earlier else None
            mine: Future[str] = answer or Future()
            self._asked[request].append(mine)
        if answer is None:
            try:
                mine.set_result(self._context.copy().run(self._answer, *request))
            except BaseException as error:
                # A worker that is not answered would wait for ever.
                mine.set_result(unmade(MemtuneError(f"the call failed: {in_one_line(error)}")))
        return mine.result()
