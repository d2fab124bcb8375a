"""The calls a run has paid for, on disk, with room reserved for them: a resumed run books them as its own calls."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from tracing.errors import RunError
from tracing.formats import read_stamped, stamped
from tracing.llm.accounting.token_counts import TokenCounts


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One paid call.

    Attributes:
        keys: of its replies, as in the response cache.
        prompt_tokens, completion_tokens, cached_tokens, thinking_tokens, estimated: its `TokenCounts`.
        seconds: time in the run when it ended.
        took: seconds from its request to its reply, by which a resumed run knows how long its calls take.
    """

    keys: tuple[str, ...]
    prompt_tokens: Annotated[int, Field(ge=0)]
    completion_tokens: Annotated[int, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    took: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    cached_tokens: Annotated[int, Field(ge=0)] = 0
    thinking_tokens: Annotated[int, Field(ge=0)] = 0
    estimated: bool = False

    @property
    def tokens(self) -> TokenCounts:
        counts = self.prompt_tokens, self.completion_tokens, self.cached_tokens, self.thinking_tokens
        return TokenCounts(*counts, self.estimated)


@dataclass(frozen=True, slots=True)
class _MemoryLine:
    memory: str


_KIND = "ledger.jsonl"

_SPARE_BYTES = 2 << 20
"""Reserved in each folder: enough for many replies and their entries, and a run's summary and report."""

_LINE: TypeAdapter[_MemoryLine | LedgerEntry] = TypeAdapter(_MemoryLine | LedgerEntry)


class Ledger:
    """An append-only file of a run's paid calls and saved memories; thread-safe.

    A resumed run starts over and finds all its replies in the response cache. This file distinguishes its own replies
    from those of other runs. A call is recorded after its reply arrives and before the reply is cached, so a kill
    between the two costs one call but never a wrong count. A partial line at the end, as a kill leaves it, is cut off.

    Calls paid while the disk fills up are recorded too, in reserved room, so that they are not paid again. After that,
    no further call may be made (`require_room`).

    Args:
        path: the file, in the run's folder; created if it is missing.
        cache: folder of the response cache, where room is reserved too; None for none.
    """

    def __init__(self, path: Path, *, cache: Path | None = None) -> None:
        """Open the ledger, so that its entries can be claimed; a `RunError` if it cannot be used or is damaged."""
        self._path = path
        self._lock = threading.Lock()
        self._failed: str | None = None
        self._spare_used = False
        self._unclaimed: dict[str, LedgerEntry] = {}
        self._memories: set[str] = set()
        try:
            if path.exists():
                self._load(path)
            # Without a buffer: a line that could not be written must not be written later, behind half of itself.
            self._file = path.open("ab", buffering=0)
            self._spare = _spare_room([path.parent, *([] if cache is None else [cache])])
        except OSError as error:
            remedy = f"check the folder's permissions and make room, then: memtune run --resume {path.parent}"
            raise RunError(f"{path}: cannot be used ({error.strerror}); {remedy}") from None

    def _load(self, path: Path) -> None:
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.truncate(path, len(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                record = read_stamped(_KIND, line, path, _LINE)
            except ValidationError:
                raise RunError(
                    f"{path}:{number}: is damaged; delete the line: the call it records is then counted as a cache hit"
                ) from None
            if isinstance(record, LedgerEntry):
                self._unclaimed.update(dict.fromkeys(record.keys, record))
            else:
                self._memories.add(record.memory)

    def record_call(self, keys: Sequence[str], tokens: TokenCounts, seconds: float, took: float = 0.0) -> None:
        """Record a call whose reply has arrived.

        A call for the same keys that a killed process recorded, but did not cache, is then nobody's to claim.

        Raises:
            RunError: it, or an earlier one, could not be written, even in the reserved room.
        """
        if self._has_unclaimed(keys):
            with self._lock:
                for key in keys:
                    self._unclaimed.pop(key, None)
        ended, took = round(seconds, 3), round(took, 3)
        details = tokens.cached, tokens.thinking, tokens.estimated
        self._append(LedgerEntry(tuple(keys), tokens.prompt, tokens.completion, ended, took, *details))

    def claim(self, keys: Sequence[str]) -> list[LedgerEntry]:
        """The calls made before the run was resumed that returned the replies for `keys`, each given once."""
        if not self._has_unclaimed(keys):
            return []
        with self._lock:
            calls = {self._unclaimed[key] for key in keys if key in self._unclaimed}
            for call in calls:
                for key in call.keys:
                    self._unclaimed.pop(key, None)
        return sorted(calls, key=lambda call: call.seconds)

    def made(self, key: str) -> bool:
        """Whether the run got the reply for `key` before it was resumed, and has not claimed it yet."""
        return self._has_unclaimed((key,))

    def _has_unclaimed(self, keys: Sequence[str]) -> bool:
        """Whether calls for `keys` may be claimed; without the lock, since what can be claimed only becomes less."""
        return any(key in self._unclaimed for key in keys)

    def memory(self, key: str) -> None:
        """Record that the run is about to save a memory; a `RunError` as of `record_call`."""
        self._append(_MemoryLine(key))

    def claim_memory(self, key: str) -> bool:
        """Whether the run saved this memory before it was resumed; true once. Build it again then, from the cache."""
        if key not in self._memories:
            return False
        with self._lock:
            is_new = key in self._memories
            self._memories.discard(key)
            return is_new

    def use_spare_room(self) -> None:
        """Release the reserved room, since something already paid cannot be stored without it."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        self._spare_used = True
        self._spare.close()

    def require_room(self) -> None:
        """Raise a `RunError` if another call could not be recorded, or its reply not stored."""
        remedy = f"make room, then go on with: memtune run --resume {self._path.parent}"
        if self._failed is not None:
            raise RunError(f"{self._path}: cannot be written ({self._failed}); {remedy}")
        if self._spare_used:
            raise RunError(f"{self._path.parent}: no room to store further replies; {remedy}")

    def _append(self, record: _MemoryLine | LedgerEntry) -> None:
        line = json.dumps(stamped(_KIND, asdict(record)), separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if self._failed is None:
                try:
                    self._write(line)
                except OSError:
                    self._release()
                    try:
                        self._write(line)
                    except OSError as error:
                        self._failed = error.strerror
        if self._failed is not None:
            self.require_room()

    def _write(self, line: bytes) -> None:
        """Write all of a line, or nothing."""
        written = self._file.write(line)
        if written < len(line):
            with contextlib.suppress(OSError):
                os.truncate(self._path, os.fstat(self._file.fileno()).st_size - written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()
            self._spare.close()


def _spare_room(folders: Sequence[Path]) -> contextlib.ExitStack:
    """Room in folders, until it is closed. Its files have no name, so no process leaves one behind."""
    with contextlib.ExitStack() as room:
        for folder in folders:
            file = room.enter_context(tempfile.TemporaryFile(dir=folder))
            # Zeros would take no room on a disk that compresses.
            file.write(os.urandom(_SPARE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        return room.pop_all()
