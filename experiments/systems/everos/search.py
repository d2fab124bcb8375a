"""What EverOS holds of a conversation, and its own search there: a server that is kept for the next question."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import asdict, dataclass, field
from typing import Any

from experiments.systems.everos.server import OWNER, Server, ServerPool
from tracing.errors import MemorySystemError, MemtuneError, raise_first
from tracing.llm.access import ModelAccess
from tracing.llm.models import ChatReply

EPISODE, FACT = "episode", "atomic_fact"


@dataclass(frozen=True, slots=True)
class StoredEpisode:
    """An entry of EverOS's markdown files.

    Attributes:
        id: its name in the trace, which does not depend on when it was written.
        text: what it says.
        variable: id of its variable in the trace.
        kind: `EPISODE` or `FACT`.
        time: of what it tells, as EverOS writes it.
        session: where it was said.
        sections: the sections of its entry, by title.
        parent: id of the episode of a fact; "" for an episode.
    """

    id: str
    text: str
    variable: str
    kind: str
    time: str
    session: str
    sections: Mapping[str, str] = field(hash=False)
    parent: str = ""

    @property
    def indexed(self) -> tuple[str, ...]:
        """The texts that EverOS embeds for it."""
        subject = self.sections.get("Subject", "").strip()
        return (self.text, subject) if subject else (self.text,)

    def as_item(self, owner: str, parent: str) -> dict[str, Any]:
        """The entry as EverOS writes it, with its parent's id there."""
        fields = {"owner_id": owner, "session_id": self.session, "timestamp": self.time}
        fields |= {"parent_type": "episode" if self.kind == FACT else "memcell", "parent_id": parent}
        if self.kind == EPISODE:
            fields["sender_ids"] = f"[{owner}]"
        return {"inline": fields, "sections": dict(self.sections)}


def as_state(entries: Sequence[StoredEpisode], vectors: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """A memory's state."""
    return {
        "entries": [asdict(entry) for entry in entries],
        "vectors": {text: list(vector) for text, vector in vectors.items()},
    }


def from_state(state: Mapping[str, Any]) -> tuple[list[StoredEpisode], dict[str, list[float]]]:
    """What `as_state` wrote."""
    return [StoredEpisode(**entry) for entry in state["entries"]], dict(state["vectors"])


def content_hash(entries: Iterable[StoredEpisode], vectors: Mapping[str, Sequence[float]]) -> str:
    """Equal for entries that an EverOS holds alike, whatever they are called in a trace."""
    rows = [[entry.id, entry.kind, entry.time, entry.session, dict(entry.sections), entry.parent] for entry in entries]
    return hashlib.sha256(json.dumps([rows, sorted(vectors.items())]).encode()).hexdigest()


_PROBE = "everos embedding dimension probe"
"""What EverOS embeds when it starts, to learn how long vectors are."""


class Recaller:
    """An EverOS that holds a memory; its vectors are known, so that only questions are embedded."""

    def __init__(self, entries: Sequence[StoredEpisode], vectors: Mapping[str, Sequence[float]]) -> None:
        self._vectors = {text: list(vector) for text, vector in vectors.items()}
        self._dimension = len(next(iter(self._vectors.values())))
        self._lock = threading.Lock()
        self._access: ModelAccess | None = None
        self._context, self._failures = Context(), list[MemtuneError]()
        self._server = Server({}, chat=_silent, embed=self._embed, dimension=self._dimension)
        try:
            self._names = self._written(entries)
            self._server.index()
        except BaseException:
            self._server.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._server.alive

    def search(self, query: str, access: ModelAccess, *, method: str, top_k: int) -> list[str]:
        """The ids of the entries found, best first: an episode, then those of its facts that speak for it."""
        with self._lock:
            self._access, self._context, self._failures = access, copy_context(), []
            body = {"user_id": OWNER, "query": query, "method": method, "top_k": top_k}
            try:
                data = self._server.post("/api/v2/memory/search", body)["data"]
            except MemorySystemError:
                raise_first(self._failures)
                raise
            finally:
                self._access = None
            entry_ids = []
            for episode in data["episodes"]:
                entry_ids += [episode["id"], *(fact["id"] for fact in episode["atomic_facts"])]
            return [self._names[entry_id] for entry_id in dict.fromkeys(entry_ids)]

    def close(self) -> None:
        """End its server."""
        self._server.close()

    def _written(self, entries: Sequence[StoredEpisode]) -> dict[str, str]:
        """Put the entries into its files; what EverOS calls each: our id."""
        names: dict[str, str] = {}
        ids: dict[str, str] = {}
        for kind in (EPISODE, FACT):
            items = [entry for entry in entries if entry.kind == kind]
            if items:
                new_ids = self._server.write(
                    kind, [item.as_item(OWNER, ids.get(item.parent, "none")) for item in items]
                )
                for entry, new_id in zip(items, new_ids, strict=True):
                    ids[entry.id], names[f"{OWNER}_{new_id}"] = new_id, entry.id
        return names

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        if text == _PROBE:
            return [1.0] + [0.0] * (self._dimension - 1)
        stored = self._vectors.get(text)
        if stored is not None:
            return stored
        access = self._access
        if access is None:
            raise MemorySystemError(f"everos embeds a text that is not in the memory: {text[:80]!r}")
        try:
            (vector,) = self._context.copy().run(access.embedding.embed, [text], query=True)
        except MemtuneError as error:
            self._failures.append(error)
            raise
        return list(vector)


_recallers: ServerPool[Recaller] = ServerPool(2)


def matching_ids(
    entries: Sequence[StoredEpisode],
    vectors: Mapping[str, Sequence[float]],
    query: str,
    access: ModelAccess,
    *,
    method: str,
    top_k: int,
) -> list[str]:
    """What an EverOS that holds these entries finds; see `Recaller.search`."""
    with _recallers.borrowed(content_hash(entries, vectors), lambda: Recaller(entries, vectors)) as recaller:
        return recaller.search(query, access, method=method, top_k=top_k)


def _silent(messages: Sequence[Mapping[str, str]]) -> ChatReply:
    raise MemorySystemError("everos asks a chat model while it searches")
