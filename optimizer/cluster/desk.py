"""The run's side of the mailbox: calls of workers are made here, each in the context of the step that it belongs to."""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import Any

from tracing.llm.access import ModelAccess
from tracing.llm.forwarding.answering import answered
from tracing.llm.forwarding.errors import written
from tracing.llm.workers import GivenUp

Calls = list[tuple[int, str, str]]


class Desk:
    """Takes calls and answers them, in threads of its own.

    Args:
        take: waits for calls; raises once there will be none.
        answer: sends the answer to the call of this number.
        threads: how many calls are made at a time at most; the limits of the endpoints are those of the access.
    """

    def __init__(self, take: Callable[[], Calls], answer: Callable[[int, str], Any], threads: int) -> None:
        self._take, self._send = take, answer
        self._steps: dict[str, tuple[ModelAccess, Context]] = {}
        self._closed = False
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="memtune-desk")
        self._thread = threading.Thread(target=self._serve, name="memtune-desk", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def step(self, access: ModelAccess) -> Iterator[str]:
        """Make the calls of one step with `access`, counted in the watches open here; gives the step's name."""
        name = uuid.uuid4().hex
        self._steps[name] = access, copy_context()
        try:
            yield name
        finally:
            del self._steps[name]

    def close(self) -> None:
        """Take no further calls; those under way end first."""
        self._closed = True
        self._thread.join()
        self._pool.shutdown(cancel_futures=True)

    def _serve(self) -> None:
        while not self._closed:
            for number, step, request in self._take():
                self._pool.submit(self._answer, number, step, request)

    def _answer(self, number: int, step: str, request: str) -> None:
        known = self._steps.get(step)
        if known is None:
            # The step was given up, or its worker taken for dead.
            self._send(number, json.dumps({"watched": {}, "error": written(GivenUp())}))
            return
        access, context = known
        self._send(number, context.copy().run(answered, access, request))
