"""The process with the run: calls that a worker forwards pass through its cache, ledger, budget and endpoint."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from array import array
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tracing import errors
from tracing.errors import MemtuneError, in_one_line
from tracing.llm.accounting.meter import Usage
from tracing.llm.booking import OF_REPLIES
from tracing.llm.settings import Role
from tracing.llm.threads import GivenUp
from tracing.recording.operations import ESTIMATED_CALLS, operation
from tracing.recording.trace_context import trace

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess

DEATHS = 3
"""Workers that may die during one step before it counts as failed."""

CHATS: tuple[Role, ...] = ("task", "proposer", "judge")
"""The roles of chat models."""


_KEPT_HERE = {"api_key", "api_key_env", "key_command", "headers", "extra_body"}
"""Settings that hold keys, or are of use to who sends the request alone."""


def described(access: ModelAccess) -> dict[str, Any]:
    """What a `ForwardedAccess` needs to know of an access, as JSON. It contains no API key."""
    models = {role: getattr(access, role) for role in (*CHATS, "embedding")}
    return {
        "models": {
            role: {
                "identity": model.identity,
                "settings": model.settings.model_dump(mode="json", exclude=_KEPT_HERE),
            }
            for role, model in models.items()
        },
        "repetition": access.repetition,
        "concurrency": access.concurrency,
        "threads": access.threads.count,
    }


def answered(access: ModelAccess, request: str) -> str:
    """Make a call that a `ForwardedAccess` asks for, in the watches that are open here; both are JSON.

    The call is made as if the worker's operation ran here, so that the meter has its name.
    """
    call = json.loads(request)
    answer: dict[str, Any] = {}
    with access.watch() as watch, trace() as recorder:
        name = call["operation"]
        with operation(name, kind="llm") if name is not None else contextlib.nullcontext():
            try:
                if call.get("malformed"):
                    watch.count_malformed()
                else:
                    answer["reply"] = _chatted(access, call) if call["role"] in CHATS else _embedded(access, call)
            except (MemtuneError, GivenUp) as error:
                answer["error"] = error_written(error)
    answer["watched"] = asdict(Usage(watch.calls, watch.cached, watch.prompt_tokens, watch.completion_tokens))
    for recorded in recorder.graph.operations.values():
        names = ("model", "prompt_tokens", "completion_tokens", "cost")
        attributes = {name: recorded.attributes[name] for name in OF_REPLIES if name in recorded.attributes}
        answer["recorded"] = {name: getattr(recorded, name) for name in names} | {"attributes": attributes}
        answer["recorded"]["estimated"] = ESTIMATED_CALLS in recorded.attributes
    return json.dumps(answer)


def unmade(error: MemtuneError | GivenUp) -> str:
    """The answer to a call that was not made."""
    return json.dumps({"watched": {}, "error": error_written(error)})


def _chatted(access: ModelAccess, call: dict[str, Any]) -> dict[str, Any]:
    return asdict(getattr(access, call["role"]).chat(call["messages"], **call["options"]))


def _embedded(access: ModelAccess, call: dict[str, Any]) -> list[str]:
    vectors = access.embedding.embed(call["texts"], query=call["query"])
    return [base64.b64encode(array("f", vector).tobytes()).decode() for vector in vectors]


def error_written(error: MemtuneError | GivenUp) -> list[str]:
    """An error to be raised in another process as JSON: the name of its class, and its message."""
    # A class of the user's own is unknown to the other process; the first of ours that it derives from is known.
    kind = next(base for base in type(error).__mro__ if base is GivenUp or base.__module__ == errors.__name__)
    return [kind.__name__, str(error)]


def error_read(fields: list[str]) -> MemtuneError | GivenUp:
    """The error that `error_written` wrote."""
    name, message = fields
    if name == GivenUp.__name__:
        return GivenUp(message)
    kind: type[MemtuneError] = getattr(errors, name)
    return kind(message)


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
