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
from tracing.llm.accounting.meter import Meter, Usage, Watch
from tracing.llm.booking import book_elsewhere, failures_noted, running_operation, watching
from tracing.llm.forwarding.forwarded_calls import CHATS, error_read
from tracing.llm.models import ChatModel, ChatReply, EmbeddingModel
from tracing.llm.settings import Limits, ModelSettings, Role
from tracing.llm.threads import Threads

Ask = Callable[[str], str]
"""Hands a request to the process with the run, and returns its answer (`forwarded_calls.answered`)."""


class ForwardedAccess(ModelAccess):
    """What a memory system sees of an access that another process holds. A context manager.

    `budget` and `meter` are empty, and `ledger` is None: the process with the run has them.
    """

    def __init__(self, ask: Ask, described: Mapping[str, Any]) -> None:
        """`described` is what `forwarded_calls.described` says of the other process's access."""
        # Nothing is opened, so the constructor of an access with endpoints of its own is not called.
        self._concurrency = int(described["concurrency"])
        self.ledger, self.repetition = None, described["repetition"]
        self.threads = Threads(described["threads"])
        self.meter, self.budget = Meter(), Budget(Limits())
        models = described["models"]
        chats = [ForwardedChatModel(ask, role, **models[role]) for role in CHATS]
        self.task, self.proposer, self.judge = chats
        self._count_malformed = chats[0].count_malformed
        self.embedding = ForwardedEmbeddingModel(ask, "embedding", **models["embedding"])
        self._held, self._guard = contextlib.ExitStack(), threading.Lock()
        self._gateway = None

    def watch(self) -> contextlib.AbstractContextManager[Watch]:
        """See `ModelAccess.watch`."""
        return watching(self._count_malformed)

    @property
    def concurrency(self) -> int:
        """How many requests the task model's endpoint may have at a time, from all workers together."""
        return self._concurrency


class _Forwarded:
    """A model that another process asks; its calls are counted here."""

    def __init__(self, ask: Ask, role: Role, identity: str, settings: Mapping[str, Any]) -> None:
        """`role` is what the other process knows the model by."""
        self.identity, self.settings = identity, ModelSettings.model_validate(settings)
        self._ask, self._role = ask, role

    def _forward(self, **request: Any) -> Any:
        with failures_noted(self.settings.model):
            call = {"role": self._role, "operation": running_operation(), **request}
            # Schemas and messages may be any mapping.
            answer = json.loads(self._ask(json.dumps(call, default=dict)))
            book_elsewhere(Usage(**answer["watched"]), answer.get("recorded"))
            if "error" in answer:
                raise error_read(answer["error"])
            return answer.get("reply")


class ForwardedChatModel(_Forwarded, ChatModel):
    """A chat model that another process asks."""

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> ChatReply:
        """See `ChatModel.chat`."""
        return ChatReply(**self._forward(messages=list(messages), options=options))

    def count_malformed(self) -> None:
        """Count a reply to the running operation as one that could not be read."""
        self._forward(malformed=True)


class ForwardedEmbeddingModel(_Forwarded, EmbeddingModel):
    """An embedding model that another process asks."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """See `EmbeddingModel.embed`."""
        vectors = self._forward(texts=list(texts), query=query)
        return [array("f", base64.b64decode(vector)).tolist() for vector in vectors]
