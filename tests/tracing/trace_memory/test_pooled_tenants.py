"""Tenants behind a pooler, which gives each transaction any of its connections, and statements that try to leave."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from pgbouncer import PgBouncer
from postgres_cluster import PostgresCluster
from word_vectors import WordVectors

from tracing.trace_memory import StoreError, TraceMemory
from tracing.trace_memory.stores.postgres_schema import ROLE

TENANTS = ("acme", "umbra")


@pytest.fixture(scope="module")
def tenant(postgres: PostgresCluster) -> str:
    """A login of tenants with no rights but those of the role of agents; its name, which is its password too."""
    if not postgres.run("SELECT 1 FROM pg_roles WHERE rolname = 'tenant'"):
        postgres.run("CREATE ROLE tenant LOGIN PASSWORD 'tenant'")
    TraceMemory(postgres.new_database(), entity="acme").close()
    postgres.run(f"GRANT {ROLE} TO tenant")
    return "tenant"


def addresses(postgres: PostgresCluster, pooler: PgBouncer, login: str) -> Iterator[str]:
    """A new store's address as the superuser or the tenants' login sees it: through the pooler, and without it."""
    for pooled in (True, False):
        made = postgres.new_database()
        TraceMemory(made, entity="acme").close()
        database = made.rsplit("/", 1)[1]
        theirs = made if login != "tenant" else postgres.url(user="tenant", password="tenant", database=database)
        yield pooler.url(theirs) if pooled else theirs


def as_owner(store: str, postgres: PostgresCluster) -> str:
    """The address of the same database for the superuser, without the pooler."""
    return postgres.url(database=store.rsplit("/", 1)[1])


def use(store: str, entity: str, attempts: int, start: threading.Barrier, foreign: list[str]) -> None:
    """Write and read as one tenant; what is read of the other goes to `foreign`."""
    (other,) = (tenant for tenant in TENANTS if tenant != entity)
    with TraceMemory(store, entity=entity, process="p", embedding=WordVectors(), sync=True) as memory:
        start.wait()
        for number in range(attempts):
            if number % 4 == 0:
                memory.step("secret", f"of {entity} {number}", id=str(number), shared=True)
            elif number % 100 == 1:
                foreign += [event.value for event in memory.search("secret", limit=50) if other in str(event)]
                foreign += [str(problem) for problem in memory.check()]
            else:
                events = memory.recall(key="secret", limit=5)
                foreign += [event.value for event in events if other in str(event.record())]
                foreign += [] if len(events) == min(5, number // 4 + 1) else [f"{len(events)} of {number}"]


@pytest.mark.parametrize(
    ("login", "attempts"),
    [
        ("superuser", 300),
        ("tenant", 300),
        pytest.param("tenant", 2_000, marks=pytest.mark.slow),
        pytest.param("tenant", 10_000, marks=pytest.mark.thorough),
        pytest.param("superuser", 10_000, marks=pytest.mark.thorough),
    ],
)
def test_two_tenants_at_once_through_one_shared_connection_never_read_or_write_as_each_other(
    postgres: PostgresCluster, pgbouncer: PgBouncer, tenant: str, login: str, attempts: int
) -> None:
    pooled, _ = addresses(postgres, pgbouncer, login)
    foreign: list[str] = []
    start = threading.Barrier(2)
    users = [threading.Thread(target=use, args=(pooled, entity, attempts // 2, start, foreign)) for entity in TENANTS]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert foreign == []
    filed = postgres.run("SELECT entity, process, value FROM memtune.events", url=as_owner(pooled, postgres))
    assert len(filed) == 2 * -(-attempts // 8)
    assert [row for row in filed if row[1] != "p" or f"of {row[0]} " not in row[2]] == []


EVERY = "SELECT string_agg(value, ' ') FROM memtune.events"
LEAVING = (
    "RESET ROLE",
    "RESET ALL",
    "DISCARD ALL",
    "SET ROLE {owner}",
    "SET ROLE NONE",
    f"SET ROLE {ROLE}",
    "SET SESSION AUTHORIZATION {owner}",
    "RESET SESSION AUTHORIZATION",
    "SET memtune.entity = 'umbra'",
    "SET row_security = off",
    "SET search_path TO pg_temp",
    "COMMIT",
    "ROLLBACK",
    f"COMMIT; RESET ROLE; {EVERY}",
    "SELECT 1) AS q; RESET ROLE; SELECT * FROM (SELECT * FROM memtune.events",
    f"DO $$ BEGIN RESET ROLE; RAISE EXCEPTION '%', ({EVERY}); END $$",
    "PREPARE _pg3_0 AS SELECT 1",
    "LISTEN x",
    "CREATE TEMP TABLE events AS SELECT 1 AS number",
    "DECLARE memtune_stream CURSOR WITH HOLD FOR SELECT * FROM events",
    f"COPY ({EVERY}) TO STDOUT",
    "SELECT set_config('role', 'none', {local}), query_to_xml('{every}', true, true, '')",
    "SELECT set_config('role', '{owner}', {local})",
    "SELECT set_config('session_authorization', '{owner}', {local}), query_to_xml('{every}', true, true, '')",
    "SELECT set_config('memtune.entity', 'umbra', {local}), query_to_xml('{every}', true, true, '')",
    "SELECT set_config('memtune.seal', replace(current_setting('memtune.seal'), 'acme', 'umbra'), {local}), "
    "query_to_xml('{every}', true, true, '')",
    "SELECT set_config('memtune.seal', memtune.seal('umbra', 'p'), {local}), query_to_xml('{every}', true, true, '')",
    "SELECT set_config('row_security', 'off', {local}), query_to_xml('{every}', true, true, '')",
    "SELECT set_config('search_path', 'pg_temp', {local})",
    "SELECT set_config('default_transaction_read_only', 'on', {local})",
    "SELECT * FROM memtune.query(memtune.seal('umbra', 'p'), 'SELECT value FROM memtune.events', '{{}}') AS t(v text)",
    "SELECT * FROM memtune.keys",
    "SELECT pg_advisory_lock(1)",
)


def statements(owner: str) -> list[str]:
    """Each of `LEAVING`, for a transaction and for a session."""
    filled = (
        shape.format(owner=owner, local=local, every=EVERY.replace("'", "''"))
        for shape in LEAVING
        for local in ("true", "false")
    )
    return list(dict.fromkeys(filled))


@pytest.mark.parametrize("login", ["superuser", "tenant"])
def test_no_statement_opens_the_store_or_leaves_anything_behind_for_the_next(
    postgres: PostgresCluster, pgbouncer: PgBouncer, tenant: str, login: str
) -> None:
    owner = postgres.run("SELECT current_user")[0][0]
    for store in addresses(postgres, pgbouncer, login):
        with TraceMemory(store, entity="umbra", process="p", sync=True) as theirs:
            theirs.step("secret", "of umbra", shared=True)
            with TraceMemory(store, entity="acme", process="p", sync=True) as memory:
                memory.step("secret", "of acme")
                written = 1
                for statement in statements(owner):
                    for way in (memory._storage.read, lambda sql: list(memory._storage.stream(sql))):
                        try:
                            read = repr(way(statement))
                        except StoreError as error:
                            read = str(error)
                        assert "of umbra" not in read, statement
                    assert [event.value for event in memory.recall(limit=1)] == ["of acme"], statement
                    assert [event.value for event in theirs.recall()] == ["of umbra"], statement
                    assert memory._storage.read("SELECT count(*) FROM events") == [(written,)], statement
                memory.step("secret", "of acme")
                written += 1
        filed = postgres.run("SELECT entity, count(*) FROM memtune.events GROUP BY 1", url=as_owner(store, postgres))
        assert sorted(filed) == [("acme", written), ("umbra", 1)]


def test_what_another_program_left_on_the_shared_connection_changes_nothing(
    postgres: PostgresCluster, pgbouncer: PgBouncer, tenant: str
) -> None:
    pooled, _ = addresses(postgres, pgbouncer, "tenant")
    with TraceMemory(pooled, entity="acme", sync=True) as memory:
        memory.step("secret", "of acme")
        for statement in (
            "CREATE TEMP TABLE events AS SELECT * FROM pg_class",
            "CREATE TEMP TABLE vectors AS SELECT * FROM pg_class",
            "SET search_path TO pg_temp",
            "SET row_security TO off",
            "SET memtune.seal TO 'forged'",
            f"SET ROLE {ROLE}",
            "SET default_transaction_read_only TO on",
        ):
            postgres.run(statement, url=pooled)
            assert [event.value for event in memory.recall()] == ["of acme"], statement
            memory.step("secret", "of acme", id="the same", sync=True)
            assert len(memory.recall()) == 2
            assert memory.check() == []
            postgres.run("DISCARD ALL", url=pooled)
            postgres.run("DELETE FROM memtune.events WHERE id = 'the same'", url=as_owner(pooled, postgres))


def test_a_pooler_in_statement_mode_is_refused_and_the_remedy_told(
    postgres: PostgresCluster, pgbouncer_of_statements: PgBouncer
) -> None:
    store = postgres.new_database()
    for _ in range(2):
        with pytest.raises(StoreError, match=r"pool_mode = statement.*set pool_mode = transaction") as refused:
            TraceMemory(pgbouncer_of_statements.url(store), entity="acme")
        assert "\n" not in str(refused.value)
        TraceMemory(store, entity="acme").close()


def test_a_stream_is_read_while_the_store_is_written_and_read(postgres: PostgresCluster, pgbouncer: PgBouncer) -> None:
    store = postgres.new_database()
    with TraceMemory(store, entity="acme", sync=True) as memory:
        for number in range(10):
            memory.step("count", number)
        numbers: list[int] = []
        for rows in memory._storage.stream("SELECT value FROM events ORDER BY number", size=3):
            memory.step("later", "x")
            memory.recall()
            numbers += [int(row[0]) for row in rows]
            assert len(rows) <= 3
        assert numbers == [*range(10)]
        abandoned = memory._storage.stream("SELECT value FROM events", size=1)
        next(abandoned)
        assert len(memory.recall()) == 14
