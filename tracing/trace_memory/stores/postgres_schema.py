"""Tables, policies, roles and functions of a trace memory in Postgres.

The setting `memtune.seal` says which tenant a transaction is for. Anybody can write to a setting, so it holds, beside
entity and process, a code that only the owner's functions can compute: the policies admit the rows of the tenant
whose seal is right for this connection and transaction. Who may act as `memtune_agent` can have a seal made;
`memtune_reader`, as which a statement from outside is run, cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracing.recording.redaction import excerpt
from tracing.trace_memory.stores.storage import StoreError

if TYPE_CHECKING:
    import psycopg

ROLE = "memtune_agent"
READER = "memtune_reader"
VERSION = "memtune trace memory, version 2"
UNSEALED = "memtune trace memory, version 1"
"""Its tenant was a plain setting of a session."""

_LOCK = 7_261_513_201_917
"""Any number: who makes or changes the schema holds the advisory lock of this number."""

_TABLES = (
    "CREATE SCHEMA memtune",
    """CREATE TABLE memtune.events (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text NOT NULL,
        entity text NOT NULL,
        process text NOT NULL,
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
    f"GRANT USAGE ON SCHEMA memtune TO {ROLE}",
    f"GRANT SELECT ON memtune.events TO {ROLE}",
    f"GRANT INSERT (id, project, session, shared, type, key, value, metadata, time) ON memtune.events TO {ROLE}",
    f"GRANT UPDATE (type, value, metadata) ON memtune.events TO {ROLE}",
    f"GRANT SELECT, INSERT, UPDATE ON memtune.vectors TO {ROLE}",
)

_RANDOM = " || ".join(["uuid_send(gen_random_uuid())"] * 4)

# A query computes these once, not for each row.
_ENTITY = "entity = (SELECT memtune.sealed(0))"
_PROCESS = "process = (SELECT memtune.sealed(1))"

_SEALS = (
    "CREATE TABLE memtune.keys (inside bytea NOT NULL, outside bytea NOT NULL)",
    f"INSERT INTO memtune.keys SELECT {_RANDOM}, {_RANDOM}",
    # HMAC (RFC 2104) with two keys instead of two paddings of one: Postgres has no `hmac` without an extension.
    """CREATE FUNCTION memtune.code_of(content text) RETURNS text
       LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
         SELECT encode(sha256(outside || sha256(inside || convert_to(concat_ws(' ', pg_backend_pid(),
           (extract(epoch FROM transaction_timestamp()) * 1000000)::bigint, content), 'UTF8'))), 'hex')
         FROM memtune.keys
       $$""",
    """CREATE FUNCTION memtune.seal(entity text, process text) RETURNS text
       LANGUAGE sql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
         SELECT memtune.code_of(content) || content
         FROM (SELECT json_build_array(entity, process)::text AS content) AS tenant
       $$""",
    """CREATE FUNCTION memtune.sealed(place integer) RETURNS text
       LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
       DECLARE
         seal text := current_setting('memtune.seal', true);
       BEGIN
         IF left(seal, 64) = memtune.code_of(substr(seal, 65)) THEN
           RETURN substr(seal, 65)::json ->> place;
         END IF;
         RETURN NULL;
       END
       $$""",
    # Inside a function that acts as its owner, Postgres lets nobody change the role, not even a superuser.
    """CREATE FUNCTION memtune.query(seal text, statement text, parameters text[]) RETURNS SETOF record
       LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, memtune, pg_temp AS $$
       BEGIN
         PERFORM set_config('memtune.seal', seal, true);
         RETURN QUERY EXECUTE statement USING parameters;
       END
       $$""",
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA memtune FROM PUBLIC",
    f"GRANT EXECUTE ON FUNCTION memtune.seal, memtune.sealed, memtune.query TO {ROLE}",
    f"GRANT EXECUTE ON FUNCTION memtune.sealed TO {READER}",
    f"GRANT USAGE ON SCHEMA memtune TO {READER}",
    f"GRANT SELECT ON memtune.events, memtune.vectors TO {READER}",
    "ALTER TABLE memtune.events ALTER entity DROP DEFAULT, ALTER process DROP DEFAULT",
    f"GRANT INSERT (entity, process) ON memtune.events TO {ROLE}",
    "DROP POLICY IF EXISTS seen ON memtune.events",
    "DROP POLICY IF EXISTS added ON memtune.events",
    "DROP POLICY IF EXISTS changed ON memtune.events",
    "DROP POLICY IF EXISTS of_seen_events ON memtune.vectors",
    f"CREATE POLICY seen ON memtune.events FOR SELECT USING ({_ENTITY} AND ({_PROCESS} OR shared = 1))",
    f"CREATE POLICY added ON memtune.events FOR INSERT WITH CHECK ({_ENTITY} AND {_PROCESS})",
    f"CREATE POLICY changed ON memtune.events FOR UPDATE USING ({_ENTITY} AND {_PROCESS})",
    """CREATE POLICY of_seen_events ON memtune.vectors
       USING (EXISTS (SELECT 1 FROM memtune.events e WHERE e.number = event))""",
    # A function's owner needs the right to make it, and afterwards none.
    f"GRANT CREATE ON SCHEMA memtune TO {READER}",
    f"ALTER FUNCTION memtune.query OWNER TO {READER}",
    f"REVOKE CREATE ON SCHEMA memtune FROM {READER}",
    f"COMMENT ON SCHEMA memtune IS '{VERSION}'",
)


def prepare_schema(connection: psycopg.Connection[Any], address: str) -> None:
    """Make schema and roles where they are missing, and bring those of version 1 up to date.

    Args:
        connection: to the database, with no transaction open.
        shown: the database's address, for messages.

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
                if version is None:
                    _make_roles(connection)
                    _execute(connection, (*_TABLES, *_SEALS))
                elif version == UNSEALED:
                    _make_roles(connection)
                    _execute(connection, _SEALS)
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


def _execute(connection: psycopg.Connection[Any], statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(statement)


def _version(connection: psycopg.Connection[Any]) -> str | None:
    """What the comment of the schema says; None if there is no schema."""
    row = connection.execute(
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_catalog.pg_namespace "
        "WHERE nspname = 'memtune'"
    ).fetchone()
    return None if row is None else str(row[0])
