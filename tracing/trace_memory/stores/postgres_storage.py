"""Events in a Postgres database, where row-level security keeps tenants apart.

Every connection acts as the role `memtune_agent`, which owns nothing and so obeys the policies: it sees the rows of the
entity and process that its session is set to, and cannot name either when it writes. The first to open a database makes
schema, policies and role, which takes a role that may create these.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tracing.errors import ConfigError
from tracing.recording.redaction import excerpt
from tracing.trace_memory.stores.storage import Row, StoreError, Tenant

if TYPE_CHECKING:
    import psycopg

ROLE = "memtune_agent"
VERSION = "memtune trace memory, version 1"

_CONNECT_S = 10
_LOCK = 7_261_513_201_917
"""Any number: who makes the schema holds the advisory lock of this number."""

_ENTITY = "entity = current_setting('memtune.entity', true)"
_PROCESS = "process = current_setting('memtune.process', true)"

_SCHEMA = (
    "CREATE SCHEMA memtune",
    f"COMMENT ON SCHEMA memtune IS '{VERSION}'",
    """CREATE TABLE memtune.events (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text NOT NULL,
        entity text NOT NULL DEFAULT current_setting('memtune.entity'),
        process text NOT NULL DEFAULT current_setting('memtune.process'),
        project text NOT NULL,
        session text NOT NULL,
        shared smallint NOT NULL,
        type text NOT NULL,
        key text NOT NULL,
        value text NOT NULL,
        metadata text NOT NULL,
        time double precision NOT NULL,
        UNIQUE (entity, process, id)
    )""",
    "CREATE INDEX by_time ON memtune.events (entity, time)",
    "CREATE INDEX by_type ON memtune.events (entity, type, time)",
    "CREATE INDEX by_key ON memtune.events (entity, key, time)",
    "CREATE INDEX by_session ON memtune.events (entity, session, time)",
    """CREATE TABLE memtune.vectors (
        event bigint PRIMARY KEY REFERENCES memtune.events (number) ON DELETE CASCADE,
        model text NOT NULL,
        vector bytea NOT NULL
    )""",
    "ALTER TABLE memtune.events ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE memtune.events FORCE ROW LEVEL SECURITY",
    "ALTER TABLE memtune.vectors ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE memtune.vectors FORCE ROW LEVEL SECURITY",
    f"CREATE POLICY seen ON memtune.events FOR SELECT USING ({_ENTITY} AND ({_PROCESS} OR shared = 1))",
    f"CREATE POLICY added ON memtune.events FOR INSERT WITH CHECK ({_ENTITY} AND {_PROCESS})",
    f"CREATE POLICY changed ON memtune.events FOR UPDATE USING ({_ENTITY} AND {_PROCESS})",
    """CREATE POLICY of_seen_events ON memtune.vectors
       USING (EXISTS (SELECT 1 FROM memtune.events e WHERE e.number = event))""",
    f"GRANT USAGE ON SCHEMA memtune TO {ROLE}",
    f"GRANT SELECT ON memtune.events TO {ROLE}",
    f"GRANT INSERT (id, project, session, shared, type, key, value, metadata, time) ON memtune.events TO {ROLE}",
    f"GRANT UPDATE (type, value, metadata) ON memtune.events TO {ROLE}",
    f"GRANT SELECT, INSERT, UPDATE ON memtune.vectors TO {ROLE}",
)

_ADD_EVENT = (
    "INSERT INTO memtune.events (id, project, session, shared, type, key, value, metadata, time) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_ADD_VECTOR = (
    "INSERT INTO memtune.vectors (event, model, vector) "
    "SELECT e.number, ?::text, ?::bytea FROM memtune.events e WHERE e.number = ? "
    "ON CONFLICT (event) DO UPDATE SET model = excluded.model, vector = excluded.vector"
)


class PostgresStorage:
    """The store of one tenant in a Postgres database; a lost connection is made again at the next use."""

    like = "ILIKE"

    def __init__(self, url: str, tenant: Tenant) -> None:
        try:
            import psycopg
            from psycopg import conninfo
        except ImportError:
            raise ConfigError(
                "a trace memory in Postgres needs psycopg; install it with: pip install 'memtune[postgres]'"
            ) from None
        try:
            parts = conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            raise ConfigError(
                f"postgresql://…: is not an address of a database ({excerpt(_first_line(error), 200)}); write it as "
                "postgresql://user@host:5432/database, with the password in PGPASSWORD"
            ) from None
        self._url, self.tenant = url, tenant
        self._password = str(parts.get("password") or "") or None
        host, port, database = parts.get("host", "localhost"), parts.get("port", 5432), parts.get("dbname", "")
        self._shown = f"postgresql://{host}:{port}/{database}"
        self._lock = threading.RLock()
        self._names = itertools.count()
        self._open: psycopg.Connection[Any] | None = None
        with self._connection("opened"):
            pass

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query."""
        with self._connection("read") as connection:
            return list(connection.execute(_translated(query), values).fetchall())

    def stream(self, query: str, values: Sequence[Any] = (), size: int = 4096) -> Iterator[list[Row]]:
        """The rows of a query, at most `size` at a time, which the server holds meanwhile."""
        with self._connection("read") as connection:
            cursor = connection.cursor(f"memtune_{next(self._names)}", withhold=True)
            cursor.execute(_translated(query), values)
        try:
            while True:
                with self._connection("read"):
                    rows = cursor.fetchmany(size)
                if not rows:
                    return
                yield rows
        finally:
            if not connection.closed:
                with self._connection("read"):
                    cursor.close()

    def add_events(self, rows: Sequence[Row]) -> None:
        """Add events in one transaction; those whose id is used already are left out."""
        self._write(_ADD_EVENT, rows)

    def add_vectors(self, rows: Sequence[Row]) -> None:
        """Set the vectors of events in one transaction."""
        self._write(_ADD_VECTOR, [(model, vector, number) for number, model, vector in rows])

    def replace_content(self, number: int, kind: str, value: str, metadata: str) -> None:
        """Replace type, value and metadata of an event of this process."""
        change = "UPDATE memtune.events SET type = ?, value = ?, metadata = ? WHERE number = ?"
        self._write(change, [(kind, value, metadata, number)])

    def faults(self) -> list[str]:
        """Tables whose row-level security is off; Postgres itself sees to the rest."""
        return [
            f"row-level security of {table} is off"
            for table in ("memtune.events", "memtune.vectors")
            if not self.read("SELECT row_security_active(?)", [table])[0][0]
        ]

    def repair(self) -> None:
        """Refuse what only the owner of the tables can repair."""
        faults = self.faults()
        if faults:
            raise StoreError(
                f"{self._shown}: {faults[0]}; as the owner of the table run: ALTER TABLE … ENABLE ROW LEVEL SECURITY"
            )

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._open is not None:
                self._open.close()

    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        if rows:
            with self._connection("written") as connection, connection.transaction():
                connection.cursor().executemany(_translated(statement), rows)

    @contextmanager
    def _connection(self, done: str) -> Iterator[psycopg.Connection[Any]]:
        """The connection, for one thread at a time; errors as StoreError."""
        import psycopg

        with self._lock:
            try:
                if self._open is None or self._open.closed:
                    self._open = self._connected()
                yield self._open
            except psycopg.Error as error:
                if self._open is not None and self._open.broken:
                    self._open.close()
                said = excerpt(_first_line(error), 200, self._password)
                away = self._open is None or self._open.closed
                raise StoreError(
                    f"{self._shown}: Postgres cannot be reached ({said}); start it, or check address, user and password"
                    if away
                    else f"{self._shown}: the trace memory cannot be {done} ({said})"
                ) from None

    def _connected(self) -> psycopg.Connection[Any]:
        import psycopg

        connection = psycopg.connect(self._url, autocommit=True, connect_timeout=_CONNECT_S)
        try:
            self._prepare(connection)
            connection.execute(f"SET ROLE {ROLE}")
            connection.execute("SET search_path TO memtune")
            for name, value in (("memtune.entity", self.tenant.entity), ("memtune.process", self.tenant.process)):
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            row = connection.execute("SELECT row_security_active('memtune.events')").fetchone()
            if row is None or not row[0]:
                raise StoreError(
                    f"{self._shown}: row-level security is not in force for {ROLE}, so tenants would see each other; "
                    f"take BYPASSRLS from the role, and ENABLE ROW LEVEL SECURITY on memtune.events"
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Make schema and role where they are missing."""
        import psycopg

        said = _version(connection)
        if said is None:
            try:
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                    if _version(connection) is None:
                        self._make(connection)
            except psycopg.errors.InsufficientPrivilege as error:
                raise StoreError(
                    f"{self._shown}: the trace memory's schema is missing, and this role may not make it "
                    f"({excerpt(_first_line(error), 200)}); open it once with a role that may create schemas and "
                    f"roles, then GRANT {ROLE} TO this role"
                ) from None
            said = _version(connection)
        if said != VERSION:
            raise StoreError(
                f"{self._shown}: its schema `memtune` is of {excerpt(str(said), 80)!r}, and this memtune reads "
                f"{VERSION!r}; use the memtune that made it, or another database"
            )

    def _make(self, connection: psycopg.Connection[Any]) -> None:
        # Roles belong to the whole cluster, and another database may have made this one.
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone() is None:
            connection.execute(f"CREATE ROLE {ROLE} NOLOGIN NOBYPASSRLS")
        connection.execute(f"GRANT {ROLE} TO CURRENT_USER")
        for statement in _SCHEMA:
            connection.execute(statement)


def _version(connection: psycopg.Connection[Any]) -> str | None:
    """What the comment of the schema says; None if there is no schema."""
    row = connection.execute(
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = 'memtune'"
    ).fetchone()
    return None if row is None else str(row[0])


def _translated(query: str) -> str:
    """psycopg writes a parameter as `%s`; none of our statements has another `?` or `%`."""
    return query.replace("?", "%s")


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split("\n")[0].split()) or type(error).__name__
