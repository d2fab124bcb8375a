"""Requests that wait at the same time are answered together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tracing.llm.threads import THREAD

_MOMENT_S = 0.05
"""How long a group waits for those who have just got their replies, and are about to ask again."""

Answer = Callable[[str, Sequence[Mapping[str, Any]]], Sequence[dict[str, Any]]]
"""Answers requests to the model of that name, in their order."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    model: str
    request: Mapping[str, Any]
    reply: Future[dict[str, Any]] = field(default_factory=Future)


class Groups:
    """Answers one group at a time, each of requests to one model, the oldest first; thread-safe."""

    def __init__(self, answer: Answer, size: int) -> None:
        """`size` is that of a group, at most."""
        self._answer, self._size = answer, size
        self._waiting: list[_Waiting] = []
        self._changed = threading.Condition()
        self._expected = 1
        self._dispatcher = ThreadPoolExecutor(1, "memtune-embedded")

    def ask(self, model: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to a request; what answering its group raises is raised here."""
        waiting = _Waiting(model, request)
        with self._changed:
            self._waiting.append(waiting)
            self._changed.notify()
        self._dispatcher.submit(self._answer_next)
        return waiting.reply.result()

    def close(self) -> None:
        """Let the thread end; nothing may be asked any more."""
        self._dispatcher.shutdown(wait=False)

    def _answer_next(self) -> None:
        group = self._next()
        if not group:
            return
        # While it answers, a call is under way for whoever interrupts the program.
        thread, name = threading.current_thread(), threading.current_thread().name
        thread.name = THREAD
        try:
            replies = self._answer(group[0].model, [request.request for request in group])
            self._expect(len(group))
        except Exception as error:
            for request in group:
                # Its traceback would hold the model, and the group the error.
                request.reply.set_exception(error.with_traceback(None))
        else:
            for request, reply in zip(group, replies, strict=True):
                request.reply.set_result(reply)
        finally:
            thread.name = name

    def _next(self) -> list[_Waiting]:
        with self._changed:
            if self._waiting:
                self._changed.wait_for(lambda: len(self._waiting) >= self._expected, _MOMENT_S)
            same = [request for request in self._waiting if request.model == self._waiting[0].model]
            group = same[: self._size]
            self._waiting = [request for request in self._waiting if request not in group]
            return group

    def _expect(self, answered: int) -> None:
        with self._changed:
            self._expected = min(self._size, len(self._waiting) + answered)
