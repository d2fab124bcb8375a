"""The worker: an access whose calls are made by the process with the run.

Nothing is paid, cached or budgeted here, and no key is needed. What a call did is counted in the watches and the
operation that are open here, as if it had been made here.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracing.llm.access import ModelAccess
from tracing.llm.accounting.budget import Budget
from tracing.llm.accounting.meter import Meter
from tracing.llm.booking import book_elsewhere, failures_noted, running_operation
from tracing.llm.forwarding.forwarded_calls import CHATS
from tracing.llm.forwarding.forwarded_errors import read
from tracing.llm.models import ChatModel, ChatReply, EmbeddingModel
from tracing.llm.settings import Limits, ModelSettings, Role
from tracing.llm.threads import Threads

Ask = Callable[[str], str]
"""Hands a request to the process with the run, and returns its answer (`answering.answered`)."""


class ForwardedAccess(ModelAccess):
    """What a memory system sees of an access that another process holds. A context manager.

    `budget` and `meter` are empty, and `ledger` is None: the process with the run has them.
    """

    def __init__(self, ask: Ask, described: Mapping[str, Any]) -> None:
        """`described` is what `answering.described` says of the other process's access."""
        # Nothing is opened, so the constructor of an access with endpoints of its own is not called.
        self._asking, self._described = _Asking(ask), described
        self.ledger, self.repetition = None, described["repetition"]
        self.threads = Threads(described["threads"])
        self.meter, self.budget = Meter(), Budget(Limits())
        self.task, self.proposer, self.judge = (self._forwarded(role) for role in CHATS)
        self.embedding = ForwardedEmbeddingModel(self._asking, *self._model("embedding"))
        self._held, self._guard = contextlib.ExitStack(), threading.Lock()
        self._gateway = None

    @property
    def concurrency(self) -> int:
        """How many requests the task model's endpoint may have at a time, from all workers together."""
        return int(self._described["concurrency"])

    def _forwarded(self, role: Role) -> ChatModel:
        return ForwardedChatModel(self._asking, role, *self._model(role))

    def _model(self, role: Role) -> tuple[str, ModelSettings]:
        model = self._described["models"][role]
        return model["identity"], ModelSettings.model_validate(model["settings"])


class _Asking:
    """Makes calls elsewhere, and counts them here."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def __call__(self, model: str, request: Mapping[str, Any]) -> Any:
        with failures_noted(model):
            answer = json.loads(self._ask(json.dumps({**request, "operation": running_operation()})))
            book_elsewhere(answer["watched"], answer.get("recorded"))
            if "error" in answer:
                raise read(answer["error"])
            return answer["reply"]


class ForwardedChatModel(ChatModel):
    """A chat model that another process asks."""

    def __init__(self, asking: _Asking, role: Role, identity: str, settings: ModelSettings) -> None:
        """`role` is what the other process knows the model by."""
        self.identity, self.settings = identity, settings
        self._asking, self._role = asking, role

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
        json_object: bool = False,
        temperature: float | None = None,
        sample: int = 0,
        stop: Sequence[str] = (),
        whole: bool = True,
        alternatives: int = 0,
        tools: Mapping[str, Any] | None = None,
    ) -> ChatReply:
        """See `ChatModel.chat`."""
        options = {
            "max_tokens": max_tokens,
            "schema": None if schema is None else dict(schema),
            "json_object": json_object,
            "temperature": temperature,
            "sample": sample,
            "stop": list(stop),
            "whole": whole,
            "alternatives": alternatives,
            "tools": None if tools is None else dict(tools),
        }
        sent = [dict(message) for message in messages]
        request = {"role": self._role, "messages": sent, "options": options}
        reply = self._asking(self.settings.model, request)
        return ChatReply(**{**reply, "tool_calls": tuple(reply["tool_calls"])})


class ForwardedEmbeddingModel(EmbeddingModel):
    """An embedding model that another process asks."""

    def __init__(self, asking: _Asking, identity: str, settings: ModelSettings) -> None:
        self.identity, self.settings = identity, settings
        self._asking = asking

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """See `EmbeddingModel.embed`."""
        request = {"role": "embedding", "texts": list(texts), "query": query}
        vectors = self._asking(self.settings.model, request)
        return [array("f", base64.b64decode(vector)).tolist() for vector in vectors]
