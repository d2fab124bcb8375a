"""A cache of model replies on disk, keyed by the content of the request."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracing.errors import ConfigError
from tracing.formats import FORMATS, check_format

logger = logging.getLogger(__name__)

_KIND = "responses.sqlite"
_FORMAT = FORMATS[_KIND]
"""Part of every key: raised when the meaning of a stored reply changes."""

# One encoder for all keys: `json.dumps` would build one each time.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

_WAIT_SECONDS = 60.0
"""How long to wait for other processes that use the same file."""


def request_key(**parts: Any) -> str:
    """Content address of a request: SHA-256 over its parts.

    The order of `parts` does not matter; the order of keys inside a part does, since the order of properties in a
    reply schema decides the order in which a model writes them.
    """
    named = [[name, parts[name]] for name in sorted(parts)]
    return hashlib.sha256(_encode([_FORMAT, named]).encode("ascii")).hexdigest()


class ResponseCache:
    """A map from request keys to replies in one SQLite file; safe across threads and processes.

    Each entry is written in one transaction, so a kill at any moment leaves it whole or absent. An unreadable entry is
    a miss. A failed write (a full disk) is logged once; it prevents reuse but does not end the run.
    """

    def __init__(self, folder: Path) -> None:
        """Open or create the cache in `folder`; a `ConfigError` if that cannot be done, or its file is no cache."""
        self.path = folder / "responses.sqlite"
        self._lock = threading.Lock()
        self._warned = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"{self.path}: unusable response cache ({error}); make room, move it away, or name another folder"
            ) from None

    def _prepare(self) -> None:
        until = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as error:
                # This is the only change for which SQLite itself does not wait for another process.
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.02)
        (number,) = self._db.execute("PRAGMA user_version").fetchone()
        check_format(_KIND, number, self.path, ConfigError)
        if number < _FORMAT:
            self._db.execute(f"PRAGMA user_version={_FORMAT}")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS responses (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
        )

    def get(self, key: str) -> bytes | None:
        """The stored reply, or None."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The stored replies of `keys`, by key."""
        replies: dict[str, bytes] = {}
        with self._lock, self._tolerant("read"):
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                marks = ",".join("?" * len(part))
                rows = self._db.execute(f"SELECT key, value FROM responses WHERE key IN ({marks})", part)  # noqa: S608
                replies.update(rows.fetchall())
        return replies

    def put(self, key: str, value: bytes) -> None:
        """Store a reply; the first one stored for a key stays."""
        self.put_many({key: value})

    def put_many(self, entries: Mapping[str, bytes]) -> bool:
        """Store several replies in one transaction; False if they could not be written."""
        return self._write("INSERT OR IGNORE INTO responses VALUES (?, ?)", list(entries.items()))

    def replace(self, key: str, value: bytes) -> None:
        """Store a value that may change, replacing the stored one."""
        self._write("INSERT OR REPLACE INTO responses VALUES (?, ?)", [(key, value)])

    def discard(self, keys: Sequence[str]) -> None:
        """Remove unusable entries, so that others can replace them."""
        self._write("DELETE FROM responses WHERE key = ?", [(key,) for key in keys])

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> bool:
        with self._lock, self._tolerant("write"):
            if len(rows) == 1:
                # One statement is a transaction of its own, in a third of the time.
                self._db.execute(statement, rows[0])
                return True
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany(statement, rows)
            return True
        return False

    @contextlib.contextmanager
    def _tolerant(self, doing: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if not self._warned:
                self._warned = True
                logger.warning("%s: cannot %s the response cache (%s)", self.path, doing, error)

    def __len__(self) -> int:
        with self._lock:
            return int(self._db.execute("SELECT count(*) FROM responses").fetchone()[0])

    def close(self) -> None:
        """Close the file; the cache cannot be used afterwards."""
        with self._lock:
            self._db.close()
