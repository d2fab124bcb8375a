"""Calls to models of which a library says when they begin and end."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from tracing.graph.elements import Variable
from tracing.instrument.program_steps import Link, Step
from tracing.recording.operations import ActiveOperation
from tracing.recording.recorder import Recorder, current_recorder


class ModelCall:
    """A model that is asked in a step. While it is, the recording of its client leaves it alone."""

    def __init__(self, step: Step | None, links: Sequence[Link], model: str) -> None:
        self._alone = step is None
        self._step = step or Step("chat")
        self._model, self.over = model, False
        self._step.ask(links)
        _LAST_CALL.set(weakref.ref(self))

    @property
    def recorder(self) -> Recorder:
        """Of the trace that it began in."""
        return self._step.recorder

    def answered(
        self, text: str, value: Any = None, *, model: str = "", read: int = 0, written: int = 0
    ) -> Variable | None:
        """The reply arrived, with a text and, where it is more than that, a value; returns its variable."""
        if self.over or self._step.recorder.ended:
            return None
        self.over = True
        op = self._operation()
        op.record_call(model=model or self._model, prompt_tokens=read, completion_tokens=written)
        reply = op.output("reply", text if value is None else value, kind="reply")
        self._step.replies.append((text, reply))
        if self._step.streams:
            op.output("prediction", text, name="prediction", kind="prediction")
        if self._alone or self._step.streams:
            self._step.end()
        return reply

    def failed(self, error: BaseException) -> None:
        """The call raised."""
        if self.over or self._step.recorder.ended:
            return
        self.over = True
        op = self._operation()
        if self._alone:
            self._step.end(error)
        else:
            with self._step.recorder.lock:
                before = self._step.recorder.graph.operations[op.id].attributes.get("failed_calls", [])
                op.annotate(failed_calls=[*before, f"{type(error).__name__}: {error}"])

    def _operation(self) -> ActiveOperation:
        op = self._step.operation("llm")
        if self._step.over or op.ended is not None:  # a stream was read after the step that asked for it
            self._alone, self._step = True, Step("chat", outer=self._step)
            op = self._step.operation("llm")
        return op


_LAST_CALL: ContextVar[weakref.ref[ModelCall] | None] = ContextVar("memtune_asked", default=None)
"""The last call made in this context. It may end in another, so nobody takes it back, and it is held weakly."""


def asked_by_library() -> bool:
    """Whether a library records the model call that is being made here."""
    reference = _LAST_CALL.get()
    call = reference() if reference is not None else None
    return call is not None and not call.over and call.recorder is current_recorder()
