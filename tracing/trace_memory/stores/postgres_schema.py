"""Tables, policies, roles and functions of a trace memory in Postgres.

The setting `memtune.seal` says which tenant a transaction is for. Anybody can write to a setting, so it holds, beside
entity and process, a code that only the owner's functions can compute (`postgres_seals.sql`): the policies admit the
rows of the tenant whose seal is right for this connection and transaction. Who may act as `memtune_agent` can have a
seal made; `memtune_reader`, as which a statement from outside is run, cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracing.recording.redaction import excerpt
from tracing.trace_memory.stores.storage import StoreError, sql_in

if TYPE_CHECKING:
    import psycopg

ROLE = "memtune_agent"
READER = "memtune_reader"
VERSION = "memtune trace memory, version 2"
UNSEALED = "memtune trace memory, version 1"
"""Its tenant was a plain setting of a session."""

_LOCK = 7_261_513_201_917
"""Any number: who makes or changes the schema holds the advisory lock of this number."""


def prepare_schema(connection: psycopg.Connection[Any], address: str) -> None:
    """Make schema and roles where they are missing, and bring those of version 1 up to date.

    The connection has no transaction open.

    Raises:
        StoreError: this login may not do so, or the schema is of a version that is not known.
    """
    import psycopg

    version = _version(connection)
    if version in (None, UNSEALED):
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                version = _version(connection)
                if version in (None, UNSEALED):
                    _make_roles(connection)
                    if version is None:
                        connection.execute(sql_in("postgres_tables.sql"))
                    connection.execute(sql_in("postgres_seals.sql"))
        except psycopg.errors.InsufficientPrivilege as error:
            reason = excerpt(" ".join(str(error).split("\n")[0].split()), 200)
            raise StoreError(
                f"{address}: the trace memory's schema is missing, and this role may not make it ({reason}); "
                f"open it once with a role that may create schemas and roles, then GRANT {ROLE} TO this role"
                if version is None
                else f"{address}: the trace memory's schema is of version 1, in which a pooler mixes up tenants, and "
                f"this role may not change it ({reason}); open it once with the role that made it, or a superuser"
            ) from None
        version = _version(connection)
    if version != VERSION:
        raise StoreError(
            f"{address}: its schema `memtune` is of {excerpt(str(version), 80)!r}, and this memtune reads "
            f"{VERSION!r}; use the memtune that made it, or another database"
        )


def _make_roles(connection: psycopg.Connection[Any]) -> None:
    # Roles belong to the whole cluster, and another database may have made these.
    for role in (ROLE, READER):
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
            connection.execute(f"CREATE ROLE {role} NOLOGIN NOBYPASSRLS")
        connection.execute(f"GRANT {role} TO CURRENT_USER")


def _version(connection: psycopg.Connection[Any]) -> str | None:
    """What the comment of the schema says; None if there is no schema."""
    row = connection.execute(
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_catalog.pg_namespace "
        "WHERE nspname = 'memtune'"
    ).fetchone()
    return None if row is None else str(row[0])
