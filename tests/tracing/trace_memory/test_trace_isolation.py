"""No tenant reads another's events: not by any filter, search, check or repair, and not by SQL of its own."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgres_cluster import PostgresCluster
from word_vectors import WordVectors

from tracing.errors import MemtuneError
from tracing.trace_memory import TraceMemory
from tracing.trace_memory.events import TYPES
from tracing.trace_memory.stores.postgres_schema import READER, ROLE

ENTITIES = ("acme", "acme' OR '1'='1", "ACME", "acme%")
PROCESSES = ("planner", "buyer", "")
TENANTS = tuple(itertools.product(ENTITIES, PROCESSES))
KEYS = ("get_stock", "supplier", "collect", "Ingrid", "lesson")

ATTEMPTS = 10_000
EXAMPLES = 700


def marker(entity: str, process: str, shared: bool) -> str:
    """A word that stands in the content of the events of one tenant alone."""
    return f"secret{ENTITIES.index(entity)}x{PROCESSES.index(process)}x{int(shared)}z"


def foreign_markers(entity: str, process: str) -> list[str]:
    """What a tenant must never read: everything of other entities, and what its own processes did not share."""
    return [
        marker(other, theirs, shared)
        for (other, theirs), shared in itertools.product(TENANTS, (False, True))
        if other != entity or (theirs != process and not shared)
    ]


class Town:
    """A store with all tenants in it, each with a memory that is open; counts the attempts that were made on it."""

    def __init__(self, store: str) -> None:
        self.attempts = 0
        self.store = store
        self.memories = {
            (entity, process): TraceMemory(
                store, entity=entity, process=process, session="s1", project="p1", embedding=WordVectors()
            )
            for entity, process in TENANTS
        }
        for (entity, process), memory in self.memories.items():
            for number, (kind, key) in enumerate(zip(TYPES, KEYS, strict=True)):
                for shared in (False, True):
                    word = marker(entity, process, shared)
                    event, at = f"{kind} {shared}", 1000.0 + number
                    if kind == "tool_call":
                        memory.tool_call(key, {"part": word}, word, id=event, time=at, shared=shared)
                    elif kind == "decision":
                        memory.decision(key, word, reason=word, id=event, time=at, shared=shared)
                    else:
                        record = {"step": memory.step, "message": memory.message, "statement": memory.statement}[kind]
                        record(key, word, id=event, time=at, shared=shared)
            memory.search("secret", limit=50)

    def close(self) -> None:
        for memory in self.memories.values():
            memory.close()


@pytest.fixture(
    scope="module",
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.slow),
        pytest.param("pgbouncer", marks=pytest.mark.thorough),
    ],
)
def town(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    if request.param == "sqlite":
        store = str(tmp_path_factory.mktemp("town") / "town.db")
    else:
        store = request.getfixturevalue("postgres").new_database()
        if request.param == "pgbouncer":
            store = request.getfixturevalue("pgbouncer").url(store)
    town = Town(store)
    yield town
    town.close()


NAMES = st.sampled_from(
    [*ENTITIES, *PROCESSES, *KEYS, "s1", "p1", "%", "_", "' OR 1=1 --", 'x" OR ""="', "\\", "*", "secret"]
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.one_of(st.sampled_from(TYPES), st.lists(st.one_of(st.sampled_from(TYPES), NAMES), max_size=3)),
        "key": st.one_of(NAMES, st.lists(NAMES, max_size=3)),
        "process": NAMES,
        "scope": st.sampled_from(["session", "project", "entity"]),
        "project": NAMES,
        "session": NAMES,
        "since": st.floats(0, 2000),
        "until": st.floats(0, 2000),
        "mentions": st.one_of(
            NAMES, st.builds(marker, st.sampled_from(ENTITIES), st.sampled_from(PROCESSES), st.booleans())
        ),
    },
)
TABLES = {
    "sqlite": ["event_rows", "main.event_rows", "vector_rows", "sqlite_master", "sqlite_temp_master", "events"],
    "postgres": ["memtune.events", "events", "memtune.vectors", "vectors", "pg_stats", "memtune.keys"],
}
SHAPES = (
    "SELECT * FROM {table}",
    "SELECT count(*) FROM {table} WHERE ? = ?",
    "WITH events AS (SELECT * FROM {table}) SELECT * FROM events",
    "WITH {name} AS (SELECT * FROM {table}) SELECT * FROM {name}",
    "SELECT * FROM events UNION ALL SELECT * FROM {table}",
    "SELECT e.* FROM events e WHERE EXISTS (SELECT 1 FROM {table} WHERE value <> e.value)",
    "SELECT (SELECT max(value) FROM {table})",
    "SELECT t.* FROM events e RIGHT JOIN {table} t ON 1 = 1",
    "SELECT * FROM (SELECT * FROM {table}) AS events",
    "SELECT * FROM events WHERE entity = ? OR 1 = 1",
    "SELECT v.* FROM vectors v WHERE v.event > ? OR 1 = 1",
    "SELECT set_config('role', 'none', true), (SELECT count(*) FROM {table})",
    "SELECT set_config('memtune.seal', memtune.seal(?, ?), false), t.* FROM {table} t",
    "SELECT set_config('search_path', 'pg_temp', false), query_to_xml('SELECT * FROM {table}', true, true, '')",
)
SQL = st.tuples(
    st.sampled_from(SHAPES),
    st.integers(0, 5),
    st.sampled_from(["events", "vectors", "door_events", "event_rows", "x"]),
    st.lists(st.one_of(NAMES, st.integers(0, 500)), max_size=2),
)


def paths(memory: TraceMemory, wanted: Mapping[str, Any], text: str, sql: Any) -> Iterator[Callable[[], object]]:
    """Every way to read, each of them one attempt."""
    kind = "sqlite" if hasattr(memory._storage, "path") else "postgres"
    shape, table, name, values = sql
    query = shape.format(table=TABLES[kind][table], name=name)
    filled = [*values, "", ""][: query.count("?")]
    yield lambda: memory.recall(**wanted)
    yield lambda: memory.recall(limit=None, **wanted)
    yield lambda: memory.search(text, limit=50, **wanted)
    yield lambda: memory.recall(key=text)
    yield lambda: memory.recall(mentions=text)
    yield lambda: memory.recall(session=text, since=0)
    yield lambda: memory.recall(project=text, until=5000)
    yield lambda: memory.recall(process=text)
    yield lambda: memory._storage.read(query, filled)
    yield lambda: list(memory._storage.stream(query, filled))
    yield lambda: memory._storage.read("SELECT * FROM events WHERE entity = ?", [text])
    yield lambda: memory._storage.read("SELECT * FROM vectors")
    yield lambda: (
        memory.statement(text or "x", "own", of=[text], id="statement True"),
        memory.recall(type="statement"),
    )
    yield lambda: memory._storage.replace_content(sum(map(ord, text)) % 200, "step", '"x"', "{}")
    yield (
        lambda: (
            memory._storage.add_vectors([(sum(map(ord, text)) % 200, "words", b"")]) or memory.search(text, limit=50)
        )
    )


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(who=st.sampled_from(TENANTS), wanted=FILTERS, text=NAMES, sql=SQL)
def attack(town: Town, who: tuple[str, str], wanted: Mapping[str, Any], text: str, sql: Any) -> None:
    memory, secrets = town.memories[who], foreign_markers(*who)
    for attempt in paths(memory, wanted, text, sql):
        town.attempts += 1
        try:
            read = repr(attempt())
        except MemtuneError as error:
            read = str(error)
        found = [word for word in secrets if word in read]
        assert not found, f"{who} read {found}"


def contents(town: Town) -> dict[tuple[str, str], list[str]]:
    """What each tenant's own events are."""
    return {
        who: sorted(json.dumps(event.record()) for event in memory.recall(process=who[1]) if event.process == who[1])
        for who, memory in town.memories.items()
    }


@pytest.mark.slow
def test_no_attempt_out_of_ten_thousand_reads_across_tenants(town: Town) -> None:
    attack(town)
    assert town.attempts >= ATTEMPTS


def test_check_and_repair_stay_within_the_tenant(town: Town) -> None:
    before = contents(town)
    for who, memory in town.memories.items():
        said = repr((memory.check(), memory.repair(), memory.check()))
        assert not [word for word in foreign_markers(*who) if word in said]
    assert contents(town) == before


def test_a_tenant_sees_its_own_and_what_its_entity_shared(town: Town) -> None:
    for (entity, process), memory in town.memories.items():
        read = repr(memory.recall(limit=None))
        assert marker(entity, process, False) in read
        for other in PROCESSES:
            assert marker(entity, other, True) in read


def test_content_of_another_tenant_cannot_be_changed(town: Town) -> None:
    before = contents(town)
    stranger = town.memories[ENTITIES[3], PROCESSES[0]]
    mine = {row[0] for row in stranger._storage.read("SELECT number FROM events WHERE process = ?", [PROCESSES[0]])}
    for number in set(range(1, 200)) - mine:
        stranger._storage.replace_content(number, "step", '"taken"', "{}")
    assert contents(town) == before


def test_a_tenant_cannot_leave_its_views(tmp_path: Path) -> None:
    """SQLite refuses every statement that is not a query or a write through the views."""
    with TraceMemory(tmp_path / "e.db", entity="acme", process="planner") as memory:
        memory.step("x")
        memory.flush()
        for statement in (
            "PRAGMA writable_schema = ON",
            "PRAGMA table_info(event_rows)",
            "ATTACH ':memory:' AS other",
            "CREATE TEMP VIEW mine AS SELECT * FROM event_rows",
            "DROP VIEW events",
            "DELETE FROM event_rows",
            "DELETE FROM events",
            "UPDATE event_rows SET entity = 'b'",
            "INSERT INTO event_rows (id) VALUES ('x')",
            "SELECT load_extension('x')",
            "VACUUM INTO '/tmp/x'",
        ):
            with pytest.raises(MemtuneError, match="cannot be read"):
                memory._storage.read(statement)
        assert memory.check() == []
        assert len(memory.recall()) == 1


def test_a_write_cannot_name_another_tenant(tmp_path: Path) -> None:
    with TraceMemory(tmp_path / "e.db", entity="acme", process="planner") as memory:
        memory._storage.read(
            "INSERT INTO events (id, entity, process, project, session, shared, type, key, value, metadata, time) "
            "VALUES ('x', 'other', 'buyer', '', '', 0, 'step', 'k', '1', '{}', 1.0)"
        )
        assert [(event.entity, event.process) for event in memory.recall()] == [("acme", "planner")]
    connection = sqlite3.connect(tmp_path / "e.db")
    assert connection.execute("SELECT DISTINCT entity FROM event_rows").fetchall() == [("acme",)]
    connection.close()


def test_postgres_itself_keeps_tenants_apart(postgres: PostgresCluster) -> None:
    """The policies hold for whoever acts as the role, whatever program sends the SQL; the role owns nothing."""
    store = postgres.new_database()
    for entity in ("acme", "umbra"):
        with TraceMemory(store, entity=entity, process="p") as memory:
            memory.step("secret", entity)
    as_role = ("BEGIN", f"SET LOCAL ROLE {ROLE}")
    sealed = "SELECT set_config('memtune.seal', memtune.seal('acme', 'p'), false)"
    as_tenant = (*as_role, sealed)
    every = "SELECT entity FROM memtune.events"
    assert postgres.run(*as_tenant, every, url=store) == [("acme",)]
    assert postgres.run(*as_role, every, url=store) == []
    assert len(postgres.run(every, url=store)) == 2, "the superuser sees all, so the policies were what hid it"
    # A seal holds for one transaction of one connection, and for one tenant.
    for forged in (
        ("COMMIT", *as_role),
        ("SELECT set_config('memtune.seal', replace(current_setting('memtune.seal'), 'acme', 'umbra'), true)",),
        ("SET LOCAL memtune.entity = 'umbra'", "SET LOCAL memtune.process = 'p'", "SET LOCAL memtune.seal = ''"),
    ):
        assert postgres.run(*as_tenant, *forged, every, url=store) == []
    import psycopg

    for statement in (
        "INSERT INTO memtune.events (entity, process, id, project, session, shared, type, key, value, metadata, time) "
        "VALUES ('umbra', 'p', 'x', '', '', 0, 'step', 'k', '1', '{}', 1)",
        "UPDATE memtune.events SET entity = 'umbra'",
        "DELETE FROM memtune.events",
        "ALTER TABLE memtune.events DISABLE ROW LEVEL SECURITY",
        "DROP POLICY seen ON memtune.events",
        "SELECT * FROM memtune.keys",
        'SELECT memtune.code_of(\'["umbra", "p"]\')',
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            postgres.run(*as_tenant, statement, url=store)
    owners = postgres.run("SELECT tableowner FROM pg_tables WHERE schemaname = 'memtune'", url=store)
    assert not {(ROLE,), (READER,)} & set(owners)
