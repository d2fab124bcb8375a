"""What EverOS holds of a conversation: episodes, and the facts of each, with the vectors of its index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

EPISODE, FACT = "episode", "atomic_fact"


@dataclass(frozen=True, slots=True)
class Stored:
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


def as_state(entries: Sequence[Stored], vectors: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """A memory's state."""
    return {
        "entries": [asdict(entry) for entry in entries],
        "vectors": {text: list(vector) for text, vector in vectors.items()},
    }


def from_state(state: Mapping[str, Any]) -> tuple[list[Stored], dict[str, list[float]]]:
    """What `as_state` wrote."""
    return [Stored(**entry) for entry in state["entries"]], dict(state["vectors"])


def content_hash(entries: Iterable[Stored], vectors: Mapping[str, Sequence[float]]) -> str:
    """Equal for entries that an EverOS holds alike, whatever they are called in a trace."""
    rows = [[entry.id, entry.kind, entry.time, entry.session, dict(entry.sections), entry.parent] for entry in entries]
    return hashlib.sha256(json.dumps([rows, sorted(vectors.items())]).encode()).hexdigest()
