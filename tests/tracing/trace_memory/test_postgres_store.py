"""A Postgres database as the store: what is missing or refused is told in one line, and nothing half-made stays."""

from __future__ import annotations

import sys

import pytest
from postgres_cluster import PostgresCluster

from benchmarks.trace_memory.speed import measure_speed
from tracing.errors import ConfigError
from tracing.trace_memory import StoreError, TraceMemory
from tracing.trace_memory.stores.postgres_schema import ROLE

VERSION_1 = (
    "CREATE SCHEMA memtune",
    "COMMENT ON SCHEMA memtune IS 'memtune trace memory, version 1'",
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
    """CREATE TABLE memtune.vectors (
        event bigint PRIMARY KEY REFERENCES memtune.events (number) ON DELETE CASCADE,
        model text NOT NULL,
        vector bytea NOT NULL
    )""",
    "ALTER TABLE memtune.events ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE memtune.events FORCE ROW LEVEL SECURITY",
    "ALTER TABLE memtune.vectors ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE memtune.vectors FORCE ROW LEVEL SECURITY",
    """CREATE POLICY seen ON memtune.events FOR SELECT USING (entity = current_setting('memtune.entity', true)
       AND (process = current_setting('memtune.process', true) OR shared = 1))""",
    """CREATE POLICY added ON memtune.events FOR INSERT WITH CHECK (entity = current_setting('memtune.entity', true)
       AND process = current_setting('memtune.process', true))""",
    """CREATE POLICY changed ON memtune.events FOR UPDATE USING (entity = current_setting('memtune.entity', true)
       AND process = current_setting('memtune.process', true))""",
    """CREATE POLICY of_seen_events ON memtune.vectors
       USING (EXISTS (SELECT 1 FROM memtune.events e WHERE e.number = event))""",
    f"GRANT USAGE ON SCHEMA memtune TO {ROLE}",
    f"GRANT SELECT ON memtune.events TO {ROLE}",
    f"GRANT INSERT (id, project, session, shared, type, key, value, metadata, time) ON memtune.events TO {ROLE}",
    f"GRANT UPDATE (type, value, metadata) ON memtune.events TO {ROLE}",
    f"GRANT SELECT, INSERT, UPDATE ON memtune.vectors TO {ROLE}",
)
"""What the first version made."""


def one_line(error: pytest.ExceptionInfo[BaseException]) -> str:
    said = str(error.value)
    assert "\n" not in said
    return said


def test_without_the_library_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"pip install 'memtune\[postgres\]'") as told:
        TraceMemory("postgresql://127.0.0.1:1/x", entity="acme")
    one_line(told)


def test_a_postgres_that_is_away_or_refuses_is_one_line_without_the_password(postgres: PostgresCluster) -> None:
    for url in ("postgresql://u:hushhush7@127.0.0.1:1/x", postgres.url(password="hushhush7")):
        with pytest.raises(StoreError, match="start it, or check address, user and password") as told:
            TraceMemory(url, entity="acme")
        assert "hushhush7" not in one_line(told)
    with pytest.raises(ConfigError, match="not an address of a database") as told:
        TraceMemory("postgresql://u:hushhush7@h:port/x?nonsense=1", entity="acme")
    assert "hushhush7" not in one_line(told)


def test_a_role_that_may_not_make_the_schema_is_told_what_to_do_and_leaves_nothing(postgres: PostgresCluster) -> None:
    store = postgres.new_database()
    database = store.rsplit("/", 1)[1]
    postgres.run("CREATE ROLE plain LOGIN PASSWORD 'plain'")
    theirs = postgres.url(user="plain", password="plain", database=database)
    with pytest.raises(StoreError, match=rf"open it once with a role that may .*GRANT {ROLE}") as told:
        TraceMemory(theirs, entity="acme")
    one_line(told)
    assert postgres.run("SELECT 1 FROM pg_namespace WHERE nspname = 'memtune'", url=store) == []
    TraceMemory(store, entity="acme").close()
    postgres.run(f"GRANT {ROLE} TO plain", url=store)
    with TraceMemory(theirs, entity="acme") as memory:
        memory.step("now it may")
        assert len(memory.recall()) == 1
    assert len(postgres.run("SELECT 1 FROM memtune.events", url=store)) == 1


def test_a_store_of_version_1_opens_with_its_events_and_keeps_tenants_apart_from_then_on(
    postgres: PostgresCluster,
) -> None:
    TraceMemory(postgres.new_database(), entity="acme").close()  # makes the roles
    store = postgres.new_database()
    postgres.run(*VERSION_1, url=store)
    as_umbra = f"SET ROLE {ROLE}", "SET memtune.entity = 'umbra'", "SET memtune.process = 'p'"
    postgres.run(
        *as_umbra,
        "INSERT INTO memtune.events (id, project, session, shared, type, key, value, metadata, time) "
        "VALUES ('x', '', '', 0, 'step', 'k', '\"of umbra\"', '{}', 1)",
        "INSERT INTO memtune.vectors VALUES (1, 'words', '')",
        url=store,
    )
    if not postgres.run("SELECT 1 FROM pg_roles WHERE rolname = 'late'"):
        postgres.run("CREATE ROLE late LOGIN PASSWORD 'late'", f"GRANT {ROLE} TO late")
    theirs = postgres.url(user="late", password="late", database=store.rsplit("/", 1)[1])
    with pytest.raises(StoreError, match=r"version 1, in which .*open it once with the role that made it") as refused:
        TraceMemory(theirs, entity="acme")
    one_line(refused)
    for address in (store, theirs):
        with TraceMemory(address, entity="umbra", process="p") as memory:
            assert [event.value for event in memory.recall(key="k")] == ["of umbra"]
            memory.step("new", 1)
            assert memory.check() == []
        with TraceMemory(address, entity="acme", process="p") as memory:
            assert memory.recall() == []
    assert postgres.run(*as_umbra, "SELECT 1 FROM memtune.events", url=store) == []
    assert postgres.run("SELECT DISTINCT entity FROM memtune.events", url=store) == [("umbra",)]


def test_a_schema_of_another_version_is_refused_and_left_alone(postgres: PostgresCluster) -> None:
    store = postgres.new_database()
    postgres.run("CREATE SCHEMA memtune", "COMMENT ON SCHEMA memtune IS 'memtune trace memory, version 9'", url=store)
    with pytest.raises(StoreError, match=r"version 9.*use the memtune that made it, or another database") as told:
        TraceMemory(store, entity="acme")
    one_line(told)


def test_a_database_without_row_level_security_is_refused(postgres: PostgresCluster) -> None:
    store = postgres.new_database()
    memory = TraceMemory(store, entity="acme")
    postgres.run("ALTER TABLE memtune.events DISABLE ROW LEVEL SECURITY", url=store)
    assert [str(problem) for problem in memory.check()] == ["row-level security of memtune.events is off"]
    with pytest.raises(StoreError, match="ENABLE ROW LEVEL SECURITY"):
        memory.repair()
    memory.close()
    with pytest.raises(StoreError, match="tenants would see each other"):
        TraceMemory(store, entity="acme")
    postgres.run("ALTER TABLE memtune.events ENABLE ROW LEVEL SECURITY", url=store)


@pytest.mark.slow
def test_the_bench_measures_a_database_once(postgres: PostgresCluster) -> None:
    store = postgres.new_database()
    (size,) = measure_speed(store, 1000).sizes
    assert size.events_s > 0
    assert size.bytes_an_event is None
    with pytest.raises(ConfigError, match="empty database"):
        measure_speed(store, 1000)
