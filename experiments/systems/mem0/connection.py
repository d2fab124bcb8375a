"""A real `mem0.Memory` whose model calls go through the gateway as part of the operation that makes them."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from experiments.systems.mem0 import library
from tracing.errors import CallFailedError, MemtuneError, ModelError, raise_first
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.recorder import current_operation
from tracing.recording.scope import bind
from tracing.systems.entries import Entry, check_lengths

R = TypeVar("R")

_BEGINNING = "1970-01-01T00:00:00+00:00"


class ConnectedMemory:
    """Mem0 with both its clients on the gateway; `close` releases it.

    Mem0 swallows most errors of its models and continues with what it has. Here the first error is recorded, makes
    every later call fail at once, and is raised in the end.

    Attributes:
        memory: the `mem0.Memory`.
        entries: its stored memories by Mem0's id, in the order stored.
    """

    def __init__(self, access: ModelAccess, prompts: Mapping[str, str], instance: library.Instance) -> None:
        """See `library.open_memory`."""
        self.generation, self.ids = instance.generation, instance.ids
        self._gateway = access.gateway()
        self.memory = library.open_memory(
            prompts,
            base_url=self._gateway.base_url,
            key=self._gateway.key,
            chat_model=access.task.settings.model,
            embedding_model=access.embedding.settings.model,
            instance=instance,
        )
        self.entries: dict[str, Entry] = {}
        self._failures: list[MemtuneError] = []
        self._generate = self.memory.llm.generate_response
        self._embed = self.memory.embedding_model.embed
        self._insert = self.memory.vector_store.insert
        self.memory.embedding_model.embed = self._embedded
        if self.generation is library.V2:
            self.memory.embedding_model.embed_batch = self._embedded_together

    def close(self) -> None:
        """Release it."""
        library.close(self.memory)

    def restore(self, entries: Sequence[Entry]) -> None:
        """Put the entries of a built memory back into the store."""
        for number, entry in enumerate(entries, start=1):
            self.fit(len(entry.vector))
            pinned = id_of(number)
            payload = {"data": entry.text, **self.ids, "created_at": _BEGINNING, "updated_at": _BEGINNING}
            self._insert(vectors=[list(entry.vector)], payloads=[payload], ids=[pinned])
            self.entries[pinned] = entry

    def search(self, query: str, count: int) -> list[Entry]:
        """The `count` entries that Mem0's own search finds, best first."""
        self._cross_threads("_search_vector_store")
        two = self.generation is library.V2
        settings = {"filters": dict(self.ids), "top_k": count} if two else {**self.ids, "limit": count}
        response = self.through(lambda: self.memory.search(query, **settings))
        return [self.entries[hit["id"]] for hit in response["results"]]

    def through(self, call: Callable[[], R]) -> R:
        """What `call` returns, unless one of its model calls failed.

        Raises:
            ModelError, BudgetExceededError: what the access raised for the failed call.
        """
        import openai

        try:
            result = call()
        except Exception as error:
            raise_first(self._failures)
            if not isinstance(error, openai.OpenAIError):
                raise
            raise CallFailedError(f"mem0 cannot reach its models: {error}") from error
        raise_first(self._failures)
        return result

    def ask(self, messages: Any, response_format: Any, schema: Mapping[str, Any] | None) -> str:
        """Mem0's own chat request, made as part of the current operation, with `schema` as the form of the reply."""
        with self._call(self.memory.llm, schema=schema):
            return str(self._generate(messages=messages, response_format=response_format))

    def fit(self, size: int) -> None:
        """Prepare an empty store for vectors of this size, which is unknown before the first one."""
        if not self.entries:
            library.fit(self.memory, size)

    def embedding_of(self, text: str) -> Mapping[str, Any]:
        """Inputs of the operation that embeds `text` if no other is running."""
        return {"text": text}

    def _embedded(self, text: str, memory_action: str | None = None) -> list[float]:
        alone = current_operation() is None
        recorded = operation("embed", kind="embedding", inputs=self.embedding_of(text)) if alone else nullcontext()
        with recorded, self._call(self.memory.embedding_model, query=memory_action == "search"):
            vector: list[float] = self._embed(text, memory_action)
        self.fit(len(vector))
        stored = next(iter(self.entries.values()), None)
        try:
            check_lengths(vector, stored.vector if stored is not None else vector)
        except ModelError as error:
            self._failures.append(error)  # Mem0 may swallow it
            raise
        return vector

    def _embedded_together(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        # One request for all texts gives vectors that depend on how they were put together.
        return [self._embedded(text, memory_action) for text in texts]

    @contextlib.contextmanager
    def _call(self, part: Any, *, schema: Mapping[str, Any] | None = None, query: bool = False) -> Iterator[None]:
        raise_first(self._failures)
        client = part.client
        with self._gateway.attached(schema=schema, query=query) as attached:
            part.client = client.with_options(default_headers=attached.headers)
            try:
                yield
            finally:
                part.client = client
                self._failures += attached.failures

    def _cross_threads(self, method: str) -> None:
        """Make the thread in which Mem0 runs `method` record in the current context."""
        setattr(self.memory, method, bind(getattr(type(self.memory), method).__get__(self.memory)))


def id_of(number: int) -> str:
    """The id of the entry stored as number `number`, instead of a random one."""
    return str(uuid.UUID(int=number))
