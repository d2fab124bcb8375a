"""Events in a Postgres database, where row-level security keeps tenants apart.

Every transaction says by itself for whom it is (see `postgres_schema`) and leaves nothing behind on its connection,
since behind a pooler the next transaction may be another tenant's: none reads more than one answer or writes more than
one batch, those that read are rolled back, and no statement is prepared by name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tracing.errors import ConfigError
from tracing.recording.known_secrets import remember
from tracing.recording.redaction import excerpt
from tracing.trace_memory.stores.postgres_schema import READER, ROLE, prepare_schema
from tracing.trace_memory.stores.storage import Row, StoreError, Tenant

if TYPE_CHECKING:
    import psycopg

_CONNECT_S = 10
_MOST_SHAPES = 1000
"""Queries whose columns are remembered."""

# Whoever had the connection before may have set these for the session. `pg_temp` comes last, or else a temporary table
# of theirs would be read instead of ours.
_OWN = (
    f"; SET LOCAL ROLE {ROLE}; SET LOCAL search_path TO pg_catalog, memtune, pg_temp; "
    "SET LOCAL row_security TO on; SET LOCAL synchronous_commit TO DEFAULT"
)
_TO_READ = f"BEGIN READ ONLY{_OWN}"
_TO_WRITE = f"BEGIN READ WRITE{_OWN}"

_ADD_EVENTS = (
    "INSERT INTO memtune.events (entity, process, id, project, session, shared, type, key, value, metadata, time) "
    "SELECT %s, %s, of_rows.* FROM unnest(%s::text[], %s::text[], %s::text[], %s::smallint[], %s::text[], "
    "%s::text[], %s::text[], %s::text[], %s::double precision[]) AS of_rows ON CONFLICT DO NOTHING"
)
_ADD_VECTORS = (
    "INSERT INTO memtune.vectors (event, model, vector) SELECT e.number, of_rows.model, of_rows.vector "
    "FROM unnest(%s::bigint[], %s::text[], %s::bytea[]) AS of_rows (event, model, vector) "
    "JOIN memtune.events e ON e.number = of_rows.event "
    "ON CONFLICT (event) DO UPDATE SET model = excluded.model, vector = excluded.vector"
)
_REPLACE_CONTENT = "UPDATE memtune.events SET type = %s, value = %s, metadata = %s WHERE number = %s"


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
        remember(self._password)
        host, port, database = parts.get("host", "localhost"), parts.get("port", 5432), parts.get("dbname", "")
        self._shown = f"postgresql://{host}:{port}/{database}"
        self._lock = threading.RLock()
        self._open: psycopg.Connection[Any] | None = None
        self._of_streams: list[psycopg.Connection[Any]] = []
        """Connections that no stream uses at the moment."""
        self._columns: dict[str, str] = {}
        with self._connection("opened"):
            pass

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query."""
        with self._connection("read") as connection, _transaction(connection, _TO_READ):
            return self._rows(connection, query, values)

    def stream(self, query: str, values: Sequence[Any] = (), size: int = 4096) -> Iterator[list[Row]]:
        """The rows of a query, at most `size` at a time, which the server holds meanwhile.

        It has a connection of its own while it lasts, since the store may be used in between.
        """
        connection = None
        try:
            with self._errors("read"):
                connection = self._of_streams.pop() if self._of_streams else None
                if connection is None or connection.closed:
                    connection = self._connected()
                with _transaction(connection, _TO_READ):
                    statement, parameters = self._protected(connection, query, values)
                    connection.execute(f"DECLARE rows_of_stream NO SCROLL CURSOR FOR {statement}", parameters)
                    while rows := connection.execute(f"FETCH FORWARD {size} FROM rows_of_stream").fetchall():
                        yield rows
        finally:
            if connection is not None and not connection.closed:
                self._of_streams.append(connection)

    def add_events(self, rows: Sequence[Row]) -> None:
        """Add events in one transaction; those whose id is used already are left out."""
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            self._write(_ADD_EVENTS, (self.tenant.entity, self.tenant.process, *columns))

    def add_vectors(self, rows: Sequence[Row]) -> None:
        """Set the vectors of events in one transaction."""
        if rows:
            latest = {row[0]: row for row in rows}
            self._write(_ADD_VECTORS, [list(column) for column in zip(*latest.values(), strict=True)])

    def replace_content(self, number: int, kind: str, value: str, metadata: str) -> None:
        """Replace type, value and metadata of an event of this process."""
        self._write(_REPLACE_CONTENT, (kind, value, metadata, number))

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
        """Close the connections."""
        with self._lock:
            if self._open is not None:
                self._open.close()
        while self._of_streams:
            self._of_streams.pop().close()

    def _write(self, statement: str, parameters: Sequence[Any]) -> None:
        with self._connection("written") as connection, _transaction(connection, _TO_WRITE):
            seal = "SELECT set_config('memtune.seal', memtune.seal(%s, %s), true)"
            connection.execute(seal, (self.tenant.entity, self.tenant.process))
            connection.execute(statement, parameters)
            connection.commit()

    def _rows(self, connection: psycopg.Connection[Any], query: str, values: Sequence[Any]) -> list[Row]:
        return list(connection.execute(*self._protected(connection, query, values)).fetchall())

    def _protected(
        self, connection: psycopg.Connection[Any], query: str, values: Sequence[Any]
    ) -> tuple[str, tuple[Any, ...]]:
        """The statement that runs a query for the tenant, as a role that can do nothing else, and its parameters."""
        statement, parameters = _with_values(query, values)
        if statement not in self._columns:
            if len(self._columns) >= _MOST_SHAPES:
                self._columns.clear()
            self._columns[statement] = _columns(connection, statement)
        return (
            "SELECT t.* FROM memtune.seal(%s, %s) AS s (seal), "
            f"LATERAL memtune.query(s.seal, %s, %s::text[]) AS t ({self._columns[statement]})",
            (self.tenant.entity, self.tenant.process, statement, parameters),
        )

    @contextmanager
    def _connection(self, action: str) -> Iterator[psycopg.Connection[Any]]:
        """The connection, for one thread at a time; errors as StoreError."""
        with self._lock, self._errors(action):
            if self._open is None or self._open.closed:
                self._open = self._checked()
            yield self._open

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        """Errors as StoreError, in one line."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            message = excerpt(_first_line(error), 200, self._password)
            if "statement pooling" in message:  # PgBouncer gives all its errors the same code
                raise StoreError(
                    f"{self._shown}: a pooler with pool_mode = statement gives each statement another connection, and "
                    f"no transaction says for whom it is ({message}); set pool_mode = transaction, or session"
                ) from None
            away = isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57")
            raise StoreError(
                f"{self._shown}: Postgres cannot be reached ({message}); start it, or check address, user and password"
                if away
                else f"{self._shown}: the trace memory cannot be {action} ({message})"
            ) from None

    def _connected(self) -> psycopg.Connection[Any]:
        import psycopg

        return psycopg.connect(self._url, autocommit=True, prepare_threshold=None, connect_timeout=_CONNECT_S)

    def _checked(self) -> psycopg.Connection[Any]:
        """A connection to a database that has the schema and keeps tenants apart."""
        connection = self._connected()
        try:
            prepare_schema(connection, self._shown)
            with _transaction(connection, _TO_READ):
                active = "SELECT row_security_active('memtune.events')"
                writing, reading = connection.execute(active).fetchall(), self._rows(connection, active, ())
            if not (writing[0][0] and reading[0][0]):
                raise StoreError(
                    f"{self._shown}: row-level security is not in force for {ROLE} and {READER}, so tenants would see "
                    "each other; take BYPASSRLS from the roles, and ENABLE ROW LEVEL SECURITY on memtune.events"
                )
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def _transaction(connection: psycopg.Connection[Any], begin: str) -> Iterator[None]:
    """A transaction that is undone at its end unless it was committed; a connection that will not is closed."""
    import psycopg

    try:
        connection.execute(begin)
        yield
    finally:
        try:
            connection.rollback()
        except psycopg.Error:
            connection.close()


def _with_values(query: str, values: Sequence[Any]) -> tuple[str, list[str | None]]:
    """A query over an array of texts, `$1`, in place of its `?`, and that array.

    As a subquery it can be nothing but a SELECT, once Postgres has taken it for a single statement.
    """
    import psycopg

    first, *others = query.split("?")
    if len(others) != len(values):
        raise psycopg.ProgrammingError(f"the query has {len(others)} parameters, and there are {len(values)} values")
    texts, pieces = [], [first]
    for place, (value, other) in enumerate(zip(values, others, strict=True), 1):
        kind, text = _as_text(value)
        texts.append(text)
        pieces.append(f"($1)[{place}]::{kind}{other}")
    return f"SELECT * FROM ({''.join(pieces)}\n) AS q", texts


def _as_text(value: Any) -> tuple[str, str | None]:
    """A value's type in Postgres, and its form there."""
    match value:
        case None:
            return "text", None
        case int():
            return "bigint", str(int(value))
        case float():
            return "double precision", repr(value)
        case bytes():
            return "bytea", f"\\x{value.hex()}"
        case _:
            return "text", str(value)


def _columns(connection: psycopg.Connection[Any], statement: str) -> str:
    """The columns that a statement returns, for a list of column definitions; the statement is not run."""
    from psycopg import errors, pq

    server = connection.pgconn
    for answer in (
        server.prepare(b"", statement.encode(connection.info.encoding), [_TEXTS]),
        server.describe_prepared(b""),
    ):
        if answer.status != pq.ExecStatus.COMMAND_OK:
            raise errors.error_from_result(answer, encoding=connection.info.encoding)
    types = connection.execute(
        "SELECT format_type(type, NULL) FROM unnest(%s::oid[]) WITH ORDINALITY AS u (type, place) ORDER BY place",
        [[answer.ftype(place) for place in range(answer.nfields)]],
    ).fetchall()
    return ", ".join(f"c{place} {name}" for place, (name,) in enumerate(types))


_TEXTS = 1009
"""Postgres' number for the type text[]."""


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split("\n")[0].split()) or type(error).__name__
