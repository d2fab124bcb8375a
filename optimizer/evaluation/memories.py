"""Built memories on disk, content-addressed, so that editing a prompt downstream of a memory needs no rebuild."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing.formats import FORMATS, stamped
from tracing.systems.conversations import Conversation
from tracing.systems.description import describe
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Memory, MemorySystem, RerunsOperations

logger = logging.getLogger(__name__)

_KIND = "snapshot"


@dataclass(frozen=True, slots=True)
class Stage:
    """A memory as it was after a stretch of sessions.

    Attributes:
        memory: its state.
        records: what was recorded of its build since the stage before.
    """

    memory: Memory
    records: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A memory as it was built: after each stretch of its conversation (`Conversation.stretches`).

    Attributes:
        stages: the memory after each stretch.
        calls: model calls the build asked for, served from the cache or not.
    """

    stages: Sequence[Stage]
    calls: int

    @property
    def records(self) -> list[dict[str, Any]]:
        """The trace of the whole build."""
        return [record for stage in self.stages for record in stage.records]

    def as_json(self) -> dict[str, Any]:
        """JSON form; an item that the memory has at several stages is in it once."""
        items: dict[str, int] = {}
        states = [
            {
                key: {"items": [items.setdefault(json.dumps(item), len(items)) for item in value]}
                if isinstance(value, list)
                else {"value": value}
                for key, value in stage.memory.state.items()
            }
            for stage in self.stages
        ]
        records = [stage.records for stage in self.stages]
        return {"items": [*items], "states": states, "records": records, "calls": self.calls}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Snapshot:
        """From what `as_json` wrote."""
        items = [json.loads(text) for text in data["items"]]
        memories = [
            Memory(
                {
                    key: [items[at] for at in value["items"]] if "items" in value else value["value"]
                    for key, value in state.items()
                }
            )
            for state in data["states"]
        ]
        return cls([*map(Stage, memories, data["records"])], data["calls"])


def snapshot_key(
    system: MemorySystem, conversation: Conversation, candidate: Candidate, identities: Mapping[str, str]
) -> str:
    """What a built memory depends on: system, version, settings, upstream prompts, dialogue by stretches, and models.

    For a system that memtune does not ship, also its source: a user who changes it need not raise its version.
    """
    description = describe(system)
    return digest(
        {
            "format": FORMATS[_KIND],
            "system": [
                description.name,
                description.version,
                description.settings,
                *([description.code] if description.code else []),
            ],
            "prompts": {name: candidate[name] for name, spec in system.prompts.items() if spec.builds},
            "sessions": [
                [session.model_dump(mode="json") for session in stretch.sessions]
                for stretch in conversation.stretches()
            ],
            "models": [identities["task"], identities["embedding"]],
            # Of these the trace of a build has what was asked, which earlier ones had not.
            **({} if isinstance(system, RerunsOperations) else {"exchanges": True}),
        }
    )


def digest(value: Any) -> str:
    """SHA-256 of a JSON-serialisable value, independent of the order of its keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=dict)
    return hashlib.sha256(text.encode()).hexdigest()


class SnapshotStore:
    """Snapshots in a folder, one file each, written atomically. A file that does not load counts as absent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, key: str) -> Snapshot | None:
        """The snapshot stored under `key`."""
        try:
            return Snapshot.read(json.loads(self._path(key).read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return None

    def save(self, key: str, snapshot: Snapshot) -> None:
        """Store a snapshot under `key`. A failure (a full disk) prevents reuse, not the run: it is logged."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(stamped(_KIND, snapshot.as_json()), file, ensure_ascii=False)
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            logger.warning("%s: the memory could not be saved for reuse (%s)", path, error.strerror)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"
