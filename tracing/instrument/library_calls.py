"""Calls to models, as part of the step in which they are made; of some, a library says when they begin and end."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from tracing.graph.elements import Variable
from tracing.instrument.program_steps import Link, Step, scope_here
from tracing.recording.operations import ActiveOperation
from tracing.recording.recorder import Recorder, current_recorder
from tracing.recording.redaction import LONGEST_THINKING, excerpt
from tracing.recording.scope import NOTHING, current
from tracing.temporary_values import context_with

_UNUSABLE = {"length": "cut short", "content_filter": "filtered", "refusal": "refused"}
"""Why a reply could not be used, by the reason for which it ended."""


class ModelCall:
    """A model that is asked in a step or, where there is none, on its own."""

    def __init__(self, step: Step | None, links: Sequence[Link], model: str, *, name: str = "chat") -> None:
        self._alone, self._name = step is None, name
        self._step = step or Step(name)
        self._model, self.over = model, False
        self._step.ask(links)

    @property
    def recorder(self) -> Recorder:
        """Of the trace that it began in."""
        return self._step.recorder

    def answered(
        self,
        text: str,
        value: Any,
        *,
        model: str = "",
        read: int = 0,
        written: int = 0,
        cost: float = 0.0,
        facts: Mapping[str, Any] = NOTHING,
        thinking: str = "",
    ) -> Variable | None:
        """The reply arrived, with its text and, where it is more than that, another value; returns its variable.

        What was thought before it is an attribute of the operation.
        """
        if self.over or self.recorder.ended:
            return None
        self.over = True
        op = self._operation()
        op.record_call(model=model or self._model, prompt_tokens=read, completion_tokens=written, cost=cost)
        if thinking:
            op.annotate(thinking=excerpt(thinking, LONGEST_THINKING))
        if facts.get("finish_reason") in _UNUSABLE:
            op.annotate(unusable=_UNUSABLE[facts["finish_reason"]])
        reply = op.output("reply", value, kind="reply", **facts)
        self._step.replies.append((text, reply))
        if self._alone:
            self._step.end()
        return reply

    def failed(self, error: BaseException) -> None:
        """The call raised."""
        if self.over or self.recorder.ended:
            return
        self.over = True
        op = self._operation()
        if self._alone:
            self._step.end(error)
        else:
            with self.recorder.lock:
                before = self.recorder.graph.operations[op.id].attributes.get("failed_calls", [])
                op.annotate(failed_calls=[*before, f"{type(error).__name__}: {error}"])

    def _operation(self) -> ActiveOperation:
        op = self._step.operation("llm")
        if self._step.over or op.ended is not None:  # a stream was read after the step that asked for it
            self._alone, self._step = True, Step(self._name, outer=self._step)
            op = self._step.operation("llm")
        return op


class LibraryCall(ModelCall):
    """A call of which a library says when it begins and ends. Meanwhile the recording of its client leaves it alone."""

    def __init__(self, step: Step | None, links: Sequence[Link], model: str) -> None:
        super().__init__(step, links, model)
        _LAST_CALL.set(weakref.ref(self))

    def answered(self, text: str, value: Any, **details: Any) -> Variable | None:
        """As `ModelCall.answered`; where the step's own answer is what is streamed, the step ends with it."""
        reply = super().answered(text, value, **details)
        if reply is not None and self._step.streams:
            self._step.operation("llm").output("prediction", text, name="prediction", kind="prediction")
            self._step.end()
        return reply


_LAST_CALL: ContextVar[weakref.ref[LibraryCall] | None] = ContextVar("memtune_asked", default=None)
"""The last call made in this context. It may end in another, so nobody takes it back, and it is held weakly."""


def asked_by_library() -> bool:
    """Whether a library records the model call that is being made here."""
    reference = _LAST_CALL.get()
    call = reference() if reference is not None else None
    scope = scope_here()
    in_a_call = scope is not current.get() and scope.operation is not None and scope.operation.kind == "llm"
    return _ELSEWHERE.get() or in_a_call or (call is not None and not call.over and call.recorder is current_recorder())


_ELSEWHERE: ContextVar[bool] = ContextVar("memtune_recorded_elsewhere", default=False)


def recorded_elsewhere() -> AbstractContextManager[None]:
    """Model calls made inside are recorded by who passes them on, and not by the recording of their client."""
    return context_with(_ELSEWHERE, True)
