"""Events in a SQLite file. SQLite's authorizer refuses every statement that does not go through one tenant's views.

The tables `event_rows` and `vector_rows` hold all tenants. Each connection has temporary views `events` and `vectors`
of its tenant alone, with triggers that write on their behalf. The authorizer allows access to the tables only from
within these, so that a faulty statement, or one made of foreign text, is refused instead of reading too much.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracing.formats import FORMATS, check_format
from tracing.trace_memory.stores.storage import Row, StoreError, Tenant, sql_in

IN_MEMORY = ":memory:"

_VERSION = FORMATS["trace memory"]
_BUSY_S = 30.0

_PUBLIC = {"events", "vectors"}
_STRAY = "vector_rows WHERE event NOT IN (SELECT number FROM event_rows)"

_ON_DATA = {sqlite3.SQLITE_READ, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
_HARMLESS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_RECURSIVE}
# `load_extension` runs foreign code; the others reach data past the views only where a table was allowed.
_FORBIDDEN_FUNCTIONS = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}


class SqliteStorage:
    """The store of one tenant in a SQLite file, or in memory (`:memory:`).

    Commits are synchronised to the disk (WAL, `synchronous=FULL`), so what was committed outlives a kill and a loss of
    power. Several processes may use one file.
    """

    like = "LIKE"

    def __init__(self, path: str, tenant: Tenant) -> None:
        self.path, self.tenant = path, tenant
        self._lock = threading.RLock()
        self._door = f"door_{secrets.token_hex(16)}_"
        with self._store_errors("opened"):
            if path != IN_MEMORY:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, cached_statements=256
            )
        try:
            with self._store_errors("opened"):
                self._set_up()
        except BaseException:
            self._connection.close()
            raise

    def _set_up(self) -> None:
        connection, tenant = self._connection, self.tenant
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        check_format("trace memory", version, self.path, StoreError)
        if version not in (0, _VERSION):
            raise StoreError(
                f"{self.path}: a store of version {version}, and this memtune reads version {_VERSION}; use the "
                "memtune that made it, or another file"
            )
        if version == 0:
            with self._transaction():
                self._make_tables()
        connection.create_function("tenant_entity", 0, lambda: tenant.entity, deterministic=True)
        connection.create_function("tenant_process", 0, lambda: tenant.process, deterministic=True)
        for statement in sql_in("sqlite_views.sql").replace("DOOR_", self._door).split("\n\n"):
            connection.execute(statement)
        connection.set_authorizer(self._authorized)

    def _make_tables(self) -> None:
        connection = self._connection
        if connection.execute("PRAGMA user_version").fetchone() == (_VERSION,):
            return  # another process was quicker
        if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise StoreError(f"{self.path}: a database of another program; give another file")
        for statement in sql_in("sqlite_tables.sql").split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query."""
        with self._store_errors("read"), self._lock:
            return self._connection.execute(query, values).fetchall()

    def stream(self, query: str, values: Sequence[Any] = (), size: int = 4096) -> Iterator[list[Row]]:
        """The rows of a query, at most `size` at a time."""
        with self._store_errors("read"), self._lock:
            cursor = self._connection.execute(query, values)
        while True:
            with self._store_errors("read"), self._lock:
                rows = cursor.fetchmany(size)
            if not rows:
                return
            yield rows

    def add_events(self, rows: Sequence[Row]) -> None:
        """Add events in one transaction; those whose id is used already are left out."""
        with self._store_errors("written"), self._transaction():
            self._connection.executemany(
                "INSERT INTO events (id, project, session, shared, type, key, value, metadata, time) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def add_vectors(self, rows: Sequence[Row]) -> None:
        """Set the vectors of events in one transaction."""
        with self._store_errors("written"), self._transaction():
            self._connection.executemany("INSERT INTO vectors (event, model, vector) VALUES (?, ?, ?)", rows)

    def replace_content(self, number: int, kind: str, value: str, metadata: str) -> None:
        """Replace type, value and metadata of an event of this process."""
        with self._store_errors("written"), self._transaction():
            self._connection.execute(
                "UPDATE events SET type = ?, value = ?, metadata = ? WHERE number = ?", (kind, value, metadata, number)
            )

    def faults(self) -> list[str]:
        """What SQLite's own check finds, and vectors of events that are gone."""
        faults = [str(row[0]) for row in self._unguarded("PRAGMA integrity_check")]
        ((strays,),) = self._unguarded(f"SELECT count(*) FROM {_STRAY}")
        return [*(fault for fault in faults if fault != "ok"), *([f"{strays} vectors of no event"] if strays else [])]

    def repair(self) -> None:
        """Make the indexes again and delete vectors of events that are gone."""
        self._unguarded(f"DELETE FROM {_STRAY}")
        self._unguarded("REINDEX event_rows")
        faults = self.faults()
        if faults:
            raise StoreError(
                f"{self.path}: is damaged beyond its indexes ({faults[0]}); restore a copy, or save what is readable "
                "with `sqlite3 FILE .recover`"
            )

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    def _unguarded(self, statement: str) -> list[Row]:
        """Run a statement of upkeep, which reads no content; the lock keeps other threads out meanwhile."""
        with self._store_errors("checked"), self._lock:
            self._connection.set_authorizer(None)
            try:
                return self._connection.execute(statement).fetchall()
            finally:
                self._connection.set_authorizer(self._authorized)

    def _authorized(
        self, action: int, first: str | None, second: str | None, database: str | None, within: str | None
    ) -> int:
        """Whether SQLite may do this; `within` names the view, trigger or subquery whose text asks for it."""
        if action in _HARMLESS:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            return sqlite3.SQLITE_DENY if (second or "").lower() in _FORBIDDEN_FUNCTIONS else sqlite3.SQLITE_OK
        through = (within or "").startswith(self._door)
        if action in _ON_DATA and (through or first in _PUBLIC or (first or "").startswith(self._door)):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def _store_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{self.path}: the trace memory cannot be {action} ({error}); {_remedy(error)}") from error


def _remedy(error: Exception) -> str:
    message = str(error)
    if "prohibited" in message or "not authorized" in message:
        return "a statement reads or writes nothing but its tenant's events and vectors"
    if "not a database" in message:
        return "give another file"
    if "malformed" in message:
        return "call repair(), or restore a copy of the file"
    if "full" in message:
        return "make room on the disk, then flush() again"
    if "locked" in message:
        return "another program holds it; end that one, or try again"
    return "check that the folder exists and may be written"
