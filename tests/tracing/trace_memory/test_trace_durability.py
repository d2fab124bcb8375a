"""What was acknowledged outlives a kill, and a store that is away or damaged loses nothing silently."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from postgres_cluster import PASSWORD, PostgresCluster
from word_vectors import WordVectors

from tracing.conformance import require
from tracing.trace_memory import StoreError, TraceMemory
from tracing.trace_memory.event_writer import MOST_WAITING, Writer
from tracing.trace_memory.stores import sqlite_storage
from tracing.trace_memory.stores.storage import Row

AGENT = Path(__file__).with_name("writing_agent.py")
ROOT = Path(__file__).resolve().parents[3]


def killed(store: str, run: str, mode: str, after_s: float) -> int:
    """Let an agent record, kill it a moment after its first acknowledgement, and return the last one it told."""
    process = subprocess.Popen(
        [sys.executable, str(AGENT), store, run, mode],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert first, "the agent ended by itself"
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    # A line that the kill cut short was not told.
    told = [line for line in process.stdout.read().decode().split("\n")[:-1] if line]
    process.wait()
    return int(told[-1] if told else first)


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(store: str, mode: str) -> None:
    moments = random.Random(mode)  # noqa: S311
    for run in ("a", "b", "c"):
        acknowledged = killed(store, run, mode, moments.uniform(0, 0.15))
        with TraceMemory(store, entity="acme", process="agent") as memory:
            kept = memory.recall(session=run, limit=None)
            numbers = [event.metadata["arguments"]["number"] for event in kept]
            assert numbers == list(range(len(numbers))), "events are missing or out of order"
            assert len(numbers) > acknowledged
            assert all(event.value == "x" * 200 for event in kept), "an event was stored in part"
            assert memory.check() == []
            memory.step("goes on", session=run, sync=True)


def test_a_write_does_not_wait_for_the_store() -> None:
    """However long saving takes, `put` returns; `flush` is what waits."""
    may_save, saved = threading.Event(), []

    def save(rows: Sequence[Row]) -> None:
        assert may_save.wait(30)
        saved.extend(rows)

    writer = Writer(save)
    for number in range(1000):
        writer.put((number,))
    assert saved == []
    may_save.set()
    writer.flush()
    assert saved == [(number,) for number in range(1000)]
    writer.close()


def test_a_slow_store_holds_writes_up_and_does_not_fill_the_memory() -> None:
    may_save, put = threading.Event(), []
    writer = Writer(lambda rows: require(may_save.wait(30), "nothing may be saved"))

    def fill() -> None:
        for number in range(MOST_WAITING + 5000):
            writer.put((number,))
            put.append(number)

    filling = threading.Thread(target=fill)
    filling.start()
    filling.join(1.0)
    assert filling.is_alive()
    assert len(put) <= MOST_WAITING
    may_save.set()
    filling.join(30)
    assert not filling.is_alive()
    writer.close()


def test_flush_tells_of_a_failure_and_the_next_one_tries_again() -> None:
    saved: list[Row] = []
    failing = [True]

    def save(rows: Sequence[Row]) -> None:
        if failing[0]:
            raise StoreError("the disk is full")
        saved.extend(rows)

    writer = Writer(save)
    writer.put((1,))
    for _ in range(2):
        with pytest.raises(StoreError, match="disk is full"):
            writer.flush()
    writer.put((2,))
    failing[0] = False
    writer.flush()
    assert saved == [(1,), (2,)]
    writer.close()


def test_a_writer_that_cannot_save_refuses_more_than_it_can_keep() -> None:
    def save(rows: Sequence[Row]) -> None:
        raise StoreError("the disk is full")

    writer = Writer(save)
    for number in range(MOST_WAITING):
        writer.put((number,))
    with pytest.raises(StoreError, match="disk is full"):
        writer.put((MOST_WAITING,))
    with pytest.raises(StoreError, match="disk is full"):
        writer.close()


def test_a_locked_file_is_told_in_one_line_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_storage, "_BUSY_S", 0.05)
    memory = TraceMemory(tmp_path / "e.db", entity="acme")
    other = sqlite3.connect(tmp_path / "e.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    memory.step("one")
    with pytest.raises(StoreError, match=r"e\.db.*locked.*another program holds it") as told:
        memory.flush()
    assert "\n" not in str(told.value)
    other.execute("ROLLBACK")
    other.close()
    assert [event.key for event in memory.recall()] == ["one"]
    memory.close()


@pytest.mark.slow
def test_postgres_that_goes_away_is_told_in_one_line_and_loses_nothing(postgres: PostgresCluster) -> None:
    memory = TraceMemory(postgres.new_database(), entity="acme")
    memory.step("before", sync=True)
    postgres.stop()
    try:
        memory.step("while it was away")
        with pytest.raises(StoreError, match=r"Postgres cannot be reached .*; start it, or check") as told:
            memory.flush()
        assert "\n" not in str(told.value)
        with pytest.raises(StoreError, match="cannot be reached"):
            TraceMemory(postgres.url(), entity="acme")
        assert PASSWORD not in str(told.value)
    finally:
        postgres.start()
    assert [event.key for event in memory.recall()] == ["before", "while it was away"]
    memory.close()


def test_closing_saves_what_is_waiting_and_ends_the_use(store: str) -> None:
    memory = TraceMemory(store, entity="acme")
    for number in range(100):
        memory.step("count", number)
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        memory.step("late")
    with TraceMemory(store, entity="acme") as again:
        assert len(again.recall()) == 100


def test_a_program_that_ends_without_closing_loses_nothing(store: str) -> None:
    code = (
        "import sys; from memtune import TraceMemory; memory = TraceMemory(sys.argv[1], entity='acme')\n"
        "for number in range(500): memory.step('count', number)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code, store], check=True, env=env)
    with TraceMemory(store, entity="acme") as memory:
        assert len(memory.recall(limit=None)) == 500


def test_a_program_whose_store_fails_at_its_end_says_so_in_one_line(tmp_path: Path) -> None:
    code = (
        "import sys; from memtune import TraceMemory; from tracing.trace_memory.stores import sqlite_storage\n"
        "sqlite_storage._BUSY_S = 0.05; memory = TraceMemory(sys.argv[1], entity='acme')\n"
        "import sqlite3; other = sqlite3.connect(sys.argv[1], isolation_level=None); other.execute('BEGIN EXCLUSIVE')\n"
        "memory.step('one'); memory.step('two')"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-c", code, str(tmp_path / "e.db")]
    done = subprocess.run(arguments, check=True, env=env, capture_output=True, text=True)
    (line,) = done.stderr.splitlines()
    assert line.startswith("memtune: ")
    assert line.endswith("(2 events were not stored)")


def test_a_forked_process_is_refused(tmp_path: Path) -> None:
    """A connection and a thread do not cross a fork: two processes would write into one connection."""
    memory = TraceMemory(tmp_path / "e.db", entity="acme")
    memory.step("parent", sync=True)
    child = os.fork()
    if child == 0:
        try:
            memory.step("child")
        except StoreError as error:
            os._exit(0 if "one in each process" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(memory.recall()) == 1
    memory.close()


@pytest.fixture
def damaged(tmp_path: Path) -> TraceMemory:
    """Four events, of which two cannot be read, one has half a vector, and a vector of no event."""
    path = tmp_path / "e.db"
    with TraceMemory(path, entity="acme", embedding=WordVectors()) as memory:
        for name in ("whole", "broken", "odd", "vector"):
            memory.step(name, {"text": f"the {name} one"}, id=name)
        memory.search("one")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE event_rows SET value = '{\"text\": \"the bro' WHERE id = 'broken'")
    connection.execute("UPDATE event_rows SET type = 'dance' WHERE id = 'odd'")
    connection.execute(
        "UPDATE vector_rows SET vector = x'00ff' WHERE event = (SELECT number FROM event_rows WHERE id = 'vector')"
    )
    connection.execute("INSERT INTO vector_rows VALUES (999, 'words', x'00')")
    connection.commit()
    connection.close()
    return TraceMemory(path, entity="acme", embedding=WordVectors())


def test_check_names_what_is_wrong_and_repair_loses_nothing_that_can_be_read(damaged: TraceMemory) -> None:
    found = [str(problem) for problem in damaged.check()]
    assert len(found) == 4
    for said in ("1 vectors of no event", "event broken: ", "event odd: has the unknown type", "event vector: its vec"):
        assert any(said in one for one in found), said
    with pytest.raises(StoreError, match=r"'broken' cannot be read.*repair\(\)"):
        damaged.recall()
    assert [str(problem) for problem in damaged.repair()] == found
    assert damaged.check() == []
    events = {event.id: event for event in damaged.recall()}
    assert events["whole"].value == {"text": "the whole one"}
    assert events["broken"].type == events["odd"].type == "damaged"
    assert events["broken"].value["value"] == '{"text": "the bro'
    assert [event.id for event in damaged.search("the vector one", limit=1)] == ["vector"]
    damaged.close()


def test_an_index_that_lacks_a_row_is_found_and_made_again(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    with TraceMemory(path, entity="acme") as memory:
        memory.step("one", sync=True)
    connection = sqlite3.connect(path, isolation_level=None)
    # The row is added while SQLite does not know of the index.
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'by_key'").fetchone()
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'by_key'").fetchone()
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("DELETE FROM sqlite_master WHERE name = 'by_key'")
    connection.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(
        "INSERT INTO event_rows (id, entity, process, project, session, shared, type, key, value, metadata, time) "
        "VALUES ('two', 'acme', '', '', '', 0, 'step', 'two', '1', '{}', 1.0)"
    )
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("INSERT INTO sqlite_master VALUES ('index', 'by_key', 'event_rows', ?, ?)", (root, sql))
    connection.close()
    with TraceMemory(path, entity="acme") as memory:
        assert memory.recall(key="two") == []
        assert any("by_key" in str(problem) for problem in memory.check())
        memory.repair()
        assert [event.id for event in memory.recall(key="two")] == ["two"]
        assert memory.check() == []


def test_another_embedding_model_gets_vectors_of_its_own(tmp_path: Path) -> None:
    with TraceMemory(tmp_path / "e.db", entity="acme", embedding=WordVectors()) as memory:
        memory.step("one", "bearings")
        memory.search("bearings")
    with TraceMemory(tmp_path / "e.db", entity="acme", embedding=WordVectors("larger", 32)) as memory:
        assert len(memory.search("bearings")) == 1
        assert memory.check() == []
    with (
        TraceMemory(tmp_path / "e.db", entity="acme", embedding=WordVectors("larger", 16)) as memory,
        pytest.raises(StoreError, match=r"another length.*repair"),
    ):
        memory.search("bearings")
