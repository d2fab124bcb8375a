"""The real memori library: loaded late, on sqlite, without its cloud, Rust core and clock; and one `Memori`."""

from __future__ import annotations

import functools
import hashlib
import itertools
import logging
import sqlite3
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.systems.libraries import Library
from experiments.systems.memori.own_config import DEFAULTS, OwnMemori
from tracing.errors import MemorySystemError
from tracing.graph.elements import Variable
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.systems.entries import Entry, check_lengths

LIBRARY = Library("memori", "3.3.", "memtune system install memori", release="3.3.6", by="memori")
"""Another generation has other inner modules."""

_WRITES_EVERY_S = 0.01
"""How long Memori's writer collects writes; by default 0.1 s, and `wait` takes twice as long after every exchange."""

_loading = threading.Lock()
_hooks: dict[str, Hooks] = {}


class Hooks:
    """What one `Memori` does at the places where the library has no hook of its own."""

    def embed_query(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts that are searched for."""
        raise NotImplementedError

    def recalling(self, request: dict[str, Any], inject: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Around `inject`, which puts what Memori recalls into a chat request."""
        return inject()


def load() -> Any:
    """The module `memori`."""
    LIBRARY.require()
    with _loading:
        return _imported()


@functools.cache
def _imported() -> Any:
    module = import_module("memori")
    _put_hooks_in()
    # What it logs as an error is raised by us, and it would print the conversation.
    logging.getLogger("memori").setLevel(logging.CRITICAL)
    return module


def open_memori(path: Path, key: str, hooks: Hooks, clock: Callable[[], str], own: OwnMemori = DEFAULTS) -> Any:
    """A `memori.Memori` on the sqlite file `path`, whose tables are made if they are not there.

    Args:
        path: the file; several can have it open.
        key: distinguishes this one from all others that are open.
        hooks: of this one, until `close`.
        clock: the time that its rows get, as `2024-03-04 10:00:00`, or "" for an unknown one.
        own: its user's configuration; by default what Memori has by itself.
    """

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=60, check_same_thread=False)
        # Memori takes every time from sqlite, shows it to the model, and orders facts by it.
        connection.create_function("datetime", -1, lambda *arguments: clock())
        connection.create_function("julianday", -1, lambda *arguments: 0.0)
        return connection

    memori = load().Memori(conn=connect, use_rust_core=False)
    memori.config.embeddings.model = key
    own.give_to(memori.config)
    builder = import_module("memori.storage._builder").Builder(memori.config).disable_banner()
    builder.cli.print = lambda *arguments, **named: None
    builder.execute()
    import_module("memori.memory.augmentation._db_writer").get_db_writer().batch_timeout = _WRITES_EVERY_S
    _hooks[key] = hooks
    return memori


def settle(memori: Any) -> None:
    """Wait until Memori has extracted from all that it was given."""
    while not memori.augmentation.wait():
        # It looks for what is under way once, a moment before the last of it is done.
        time.sleep(0.001)


def close(memori: Any) -> None:
    """Release what a `Memori` holds."""
    _hooks.pop(memori.config.embeddings.model, None)
    memori.close()


def replaying_client(reply: Callable[[], str | None]) -> Any:
    """An `openai.OpenAI` that sends nothing: `reply` says what the assistant answers, or None for nothing."""
    import openai
    from openai.types.chat import ChatCompletion

    def create(**request: Any) -> ChatCompletion:
        message = {"role": "assistant", "content": reply()}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        envelope = {"id": "replayed", "object": "chat.completion", "created": 0, "model": request["model"]}
        return ChatCompletion.model_validate({**envelope, "choices": [choice]})

    client: Any = openai.OpenAI(api_key="unused", base_url="http://127.0.0.1/v1")
    client.chat.completions.create = create
    return client


def unique_key(fact: str) -> str:
    """What Memori takes two facts for the same by: their letters a to z and digits alone."""
    return str(import_module("memori._utils").generate_uniq([fact]))


def _put_hooks_in() -> None:
    embedding: Any = import_module("memori.embeddings._api")
    invoking: Any = import_module("memori.llm.invoke.invoke")
    native, inject = embedding.embed_texts_native, invoking.inject_recalled_facts

    def embed(texts: Any, model: str) -> Any:
        hooks = _hooks.get(model)
        return native(texts, model=model) if hooks is None else hooks.embed_query(texts)

    def injected(call: Any, request: dict[str, Any]) -> Any:
        hooks = _hooks.get(call.config.embeddings.model)
        return inject(call, request) if hooks is None else hooks.recalling(request, lambda: inject(call, request))

    embedding.embed_texts_native, invoking.inject_recalled_facts = embed, injected


PROCESS = "memtune"
"""The process that facts are attributed to, beside their entity."""

_LONGEST_ENTITY = 100
_WRITTEN_WITHIN_S = 60.0
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class StoredFact:
    """A stored fact with what Memori keeps of it: when it was first and last stated, and how often."""

    entry: Entry
    created: str = ""
    last: str = ""
    times: int = 1

    @property
    def shown_text(self) -> str:
        """The fact as Memori shows it to a model."""
        return f"{self.entry.text}. Stated at {self.created[:16]}" if self.created else self.entry.text

    def as_json(self) -> dict[str, Any]:
        """JSON form, for a memory's state."""
        return {**self.entry.as_json(), "created": self.created, "last": self.last, "times": self.times}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StoredFact:
        """The fact that `as_json` wrote."""
        return cls(Entry.from_json(data), data["created"], data["last"], data["times"])


class ConnectedMemori(Hooks):
    """Memori for one entity, in a new sqlite file; `close` releases it.

    Attributes:
        memori: the `memori.Memori`.
        stored: its facts by their row, in the order stored.
        now: the time that it takes for the present one.
    """

    def __init__(self, access: ModelAccess, entity: str, own: OwnMemori) -> None:
        self._access = access
        self._folder = tempfile.TemporaryDirectory(prefix="memtune-memori-")
        path = Path(self._folder.name) / "memori.sqlite"
        self.now = ""
        self.stored: dict[int, StoredFact] = {}
        self.memori = open_memori(path, f"memtune-{next(_numbers)}", self, lambda: self.now, own)
        self.memori.attribution(entity_id=_id_of(entity), process_id=PROCESS)
        self._driver = self.memori.config.storage.driver
        self._entity = self._driver.entity.create(self.memori.config.entity_id)
        self._written = 0

    def close(self) -> None:
        """Release it, and remove the file."""
        close(self.memori)
        self._folder.cleanup()

    def restore(self, facts: Sequence[StoredFact]) -> None:
        """Put the facts of a built memory back into the store."""
        for fact in facts:
            known_ids = {row["id"] for row in self._rows()}
            self.now = fact.created
            self._driver.entity_fact.create(self._entity, [fact.entry.text], [list(fact.entry.vector)])
            for row in self._rows():
                if row["id"] not in known_ids:
                    update = "UPDATE memori_entity_fact SET num_times = ?, date_last_time = ? WHERE id = ?"
                    self._driver.entity_fact.conn.execute(update, (fact.times, fact.last, row["id"]))
                    self.stored[row["id"]] = fact
        self._driver.entity_fact.conn.commit()

    def search(self, query: str, count: int) -> list[StoredFact]:
        """The `count` facts that Memori's own recall finds, best first."""
        return [self.stored[hit.id] for hit in self.memori.recall(query, limit=count)]

    def keep(self, facts: Sequence[Variable], texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        """Let Memori store facts as it stores those it extracted, and record it."""
        self._driver.entity_fact.create(self._entity, list(texts), [list(vector) for vector in vectors])
        self.note(facts, texts)

    def note(self, facts: Sequence[Variable], texts: Sequence[str]) -> None:
        """Wait until Memori has written these facts, and record what became of each."""
        self._written += len(texts)
        rows = {row["uniq"]: row for row in self._rows_when_written()}
        for fact, text in zip(facts, texts, strict=True):
            row = rows[unique_key(text)]
            earlier = self.stored.get(row["id"])
            with operation("store", inputs={"fact": fact}) as op:
                # Facts with the same letters and digits are one to Memori, which keeps the first one's text.
                name = f"m{len(self.stored) + 1}" if earlier is None else earlier.entry.id
                previous = None if earlier is None else earlier.entry.variable or None
                output = op.output("entry", row["content"], name=name, kind="memory_entry", previous=previous)
            vector = _unpacked(row["content_embedding"])
            entry = Entry(name, row["content"], vector, output.id)
            self.stored[row["id"]] = StoredFact(entry, row["date_created"], row["date_last_time"], row["num_times"])

    def embed_query(self, texts: Sequence[str]) -> list[list[float]]:
        """Hook: the vectors of texts that Memori searches for."""
        vectors = [list(vector) for vector in self._access.embedding.embed(texts, query=True)]
        for fact in self.stored.values():
            # Memori leaves out those of another length.
            check_lengths(fact.entry.vector, vectors[0])
        return vectors

    def _rows_when_written(self) -> list[dict[str, Any]]:
        until = time.monotonic() + _WRITTEN_WITHIN_S
        while True:
            rows = self._rows()
            if sum(row["num_times"] for row in rows) >= self._written:
                return rows
            if time.monotonic() > until:
                raise MemorySystemError(
                    f"memori wrote only {len(rows)} facts of {self._written} within {_WRITTEN_WITHIN_S:.0f} s"
                )
            time.sleep(0.01)

    def _rows(self) -> list[dict[str, Any]]:
        query = "SELECT * FROM memori_entity_fact WHERE entity_id = ? ORDER BY id"
        rows: list[dict[str, Any]] = self._driver.entity_fact.conn.execute(query, (self._entity,)).mappings().fetchall()
        return rows


def _id_of(entity: str) -> str:
    return entity if len(entity) <= _LONGEST_ENTITY else hashlib.sha256(entity.encode()).hexdigest()


def _unpacked(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)
