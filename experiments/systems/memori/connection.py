"""A real `memori.Memori` on a sqlite file, with what it recalls and stores as entries of the trace."""

from __future__ import annotations

import hashlib
import itertools
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from experiments.systems.memori import library
from tracing.errors import MemorySystemError
from tracing.graph.elements import Variable
from tracing.llm.access import ModelAccess
from tracing.recording.recorder import operation
from tracing.systems.entries import Entry, check_lengths

PROCESS = "memtune"
"""The process that facts are attributed to, beside their entity."""

_LONGEST_ENTITY = 100
_WRITTEN_WITHIN_S = 60.0
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Stored:
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
    def from_json(cls, data: Mapping[str, Any]) -> Stored:
        """The fact that `as_json` wrote."""
        return cls(Entry.from_json(data), data["created"], data["last"], data["times"])


class ConnectedMemori:
    """Memori for one entity; a context manager that releases it.

    Attributes:
        memori: the `memori.Memori`.
        stored: its facts by their row, in the order stored.
        now: the time that it takes for the present one.
    """

    def __init__(self, access: ModelAccess, path: Path, entity: str) -> None:
        """Open the sqlite file `path`, which may hold other entities too.

        Raises:
            ConfigError: the library is not installed, or another generation.
        """
        self._access = access
        self.now = ""
        self.stored: dict[int, Stored] = {}
        self.memori = library.open_memori(path, f"memtune-{next(_numbers)}", self, lambda: self.now)
        self.memori.attribution(entity_id=_id_of(entity), process_id=PROCESS)
        self._driver = self.memori.config.storage.driver
        self._entity = self._driver.entity.create(self.memori.config.entity_id)
        self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        library.close(self.memori)

    def restore(self, facts: Sequence[Stored]) -> None:
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

    def search(self, query: str, count: int) -> list[Stored]:
        """The `count` facts that Memori's own recall finds, best first.

        Raises:
            ModelError, BudgetExceededError: the query could not be embedded.
        """
        return [self.stored[hit.id] for hit in self.memori.recall(query, limit=count)]

    def keep(self, facts: Sequence[Variable], texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        """Let Memori store facts as it stores those it extracted, and record it."""
        self._driver.entity_fact.create(self._entity, list(texts), [list(vector) for vector in vectors])
        self.note(facts, texts)

    def note(self, facts: Sequence[Variable], texts: Sequence[str]) -> None:
        """Wait until Memori has written these facts, and record what became of each.

        Raises:
            MemorySystemError: Memori did not write them.
        """
        self._written += len(texts)
        rows = {row["uniq"]: row for row in self._rows_when_written()}
        for fact, text in zip(facts, texts, strict=True):
            row = rows[library.unique_key(text)]
            earlier = self.stored.get(row["id"])
            with operation("store", inputs={"fact": fact}) as op:
                # Facts with the same letters and digits are one to Memori, which keeps the first one's text.
                name = f"m{len(self.stored) + 1}" if earlier is None else earlier.entry.id
                previous = None if earlier is None else earlier.entry.variable or None
                output = op.output("entry", row["content"], name=name, kind="memory_entry", previous=previous)
            vector = _unpacked(row["content_embedding"])
            entry = Entry(name, row["content"], vector, output.id)
            self.stored[row["id"]] = Stored(entry, row["date_created"], row["date_last_time"], row["num_times"])

    def embed_query(self, texts: Sequence[str]) -> list[list[float]]:
        """Hook: the vectors of texts that Memori searches for."""
        vectors = [list(vector) for vector in self._access.embedding.embed(texts, query=True)]
        for fact in self.stored.values():
            # Memori leaves out those of another length.
            check_lengths(fact.entry.vector, vectors[0])
        return vectors

    def recalling(self, request: dict[str, Any], inject: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Hook: what Memori recalls is put into a chat request."""
        return inject()

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
