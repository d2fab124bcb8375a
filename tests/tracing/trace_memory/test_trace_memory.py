"""An agent's execution is recorded as structured events and recalled by exact filters or by meaning."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from word_vectors import WordVectors

from tracing.errors import ConfigError, DataError
from tracing.trace_memory import Event, StoreError, TraceMemory


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def ids(events: list[Event]) -> list[str]:
    return [event.id for event in events]


@pytest.fixture
def filled(store: str) -> TraceMemory:
    """Two sessions of two projects, written by two processes of one entity."""
    with TraceMemory(store, entity="acme", process="buyer", project="pumps", session="b1", shared=True) as buyer:
        buyer.tool_call("get_quote", {"part": "HX-20"}, {"price": 812}, id="b-quote", time="2026-03-02T08:00")
        buyer.decision("supplier", "Halden", confidence=0.8, id="b-supplier", time="2026-03-02T08:30")
    memory = TraceMemory(store, entity="acme", process="planner", project="pumps", session="s1")
    memory.message("Ingrid", "We need forty bearings.", id="said", time="2026-03-02T09:00")
    memory.tool_call("get_stock", {"part": "HX-20"}, {"left": 3}, id="stock", time="2026-03-02T09:05")
    memory.step("collect quotes", "two suppliers", status="done", id="step", time="2026-03-02T09:10")
    memory.session = "s2"
    memory.decision("supplier", "Brekke", reason="earlier", id="supplier", time="2026-03-03T10:00")
    memory.project, memory.session = "valves", "s3"
    memory.tool_call("get_stock", {"part": "V-7"}, error="TimeoutError: no reply", id="failed", time="2026-03-04T11:00")
    memory.statement("stock", "Only three HX-20 are left.", of=["stock"], id="statement", time="2026-03-04T12:00")
    return memory


def test_an_event_is_an_entity_a_key_a_value_and_metadata(filled: TraceMemory) -> None:
    call, decision, step = (
        filled.recall(type=kind, process="planner")[0].record() for kind in ("tool_call", "decision", "step")
    )
    assert call["entity"] == "acme"
    assert (call["key"], call["value"], call["metadata"]["arguments"]) == ("get_stock", {"left": 3}, {"part": "HX-20"})
    assert call["metadata"]["time"] == datetime(2026, 3, 2, 9, 5, tzinfo=UTC).timestamp()
    assert (decision["key"], decision["value"], decision["metadata"]["reason"]) == ("supplier", "Brekke", "earlier")
    assert (step["key"], step["value"], step["metadata"]["status"]) == ("collect quotes", "two suppliers", "done")
    assert filled.recall(key="supplier", process="buyer")[0].metadata["confidence"] == 0.8


def test_recall_is_by_type_key_process_scope_time_and_mention(filled: TraceMemory) -> None:
    assert ids(filled.recall()) == [
        *("b-quote", "b-supplier", "said", "stock", "step"),
        *("supplier", "failed", "statement"),
    ]
    assert ids(filled.recall(type="decision")) == ["b-supplier", "supplier"]
    assert ids(filled.recall(type=["step", "message"])) == ["said", "step"]
    assert ids(filled.recall(key="get_stock")) == ["stock", "failed"]
    assert ids(filled.recall(key=["get_stock", "get_quote"], until="2026-03-04")) == ["b-quote", "stock"]
    assert ids(filled.recall(process="buyer")) == ["b-quote", "b-supplier"]
    assert ids(filled.recall(scope="session")) == ["failed", "statement"]
    assert ids(filled.recall(session="s1")) == ["said", "stock", "step"]
    assert ids(filled.recall(scope="project")) == ["failed", "statement"]
    assert ids(filled.recall(project="pumps", type="tool_call")) == ["b-quote", "stock"]
    assert ids(filled.recall(scope="entity", since="2026-03-03T10:00")) == ["supplier", "failed", "statement"]
    assert ids(filled.recall(since="2026-03-02T08:30", until="2026-03-02T09:05")) == ["b-supplier", "said"]
    assert ids(filled.recall(mentions="hx-20")) == ["b-quote", "stock", "statement"]
    assert ids(filled.recall(mentions="HX_20")) == [], "a wildcard of SQL was taken for one"
    assert ids(filled.recall(type="decision", key="supplier", process="planner", session="s2")) == ["supplier"]


@pytest.mark.parametrize("names", [[], (), set()])
def test_an_empty_list_of_names_admits_nothing(filled: TraceMemory, names: list[str]) -> None:
    assert filled.recall(key=names) == filled.recall(type=names) == filled.recall(type="step", key=names) == []  # type: ignore[arg-type]


def test_an_empty_label_is_a_label(filled: TraceMemory) -> None:
    assert filled.recall(project="") == filled.recall(session="") == filled.recall(process="") == []
    filled.project = filled.session = ""
    filled.step("of no project", id="loose")
    assert ids(filled.recall(project="")) == ids(filled.recall(session="")) == ["loose"]


@pytest.mark.parametrize("wildcard", ["%", "_", "*", "?", "!", "!%", "[a-z]", "\\", '"', "a\nb", "\0", "\ud800"])
def test_no_sign_of_a_mention_is_a_wildcard(store: str, wildcard: str) -> None:
    with TraceMemory(store, entity="acme") as memory:
        memory.step("plain", "nothing to see", id="plain")
        memory.step("sign", f"before {wildcard} after", id="sign")
        assert ids(memory.recall(mentions=f"{wildcard} af")) == ["sign"]
        assert memory.recall(mentions=f"b{wildcard}after") == []


def test_a_limit_keeps_the_newest(filled: TraceMemory) -> None:
    assert ids(filled.recall(limit=2)) == ["failed", "statement"]
    assert filled.recall(limit=10**30) == filled.recall(limit=2**63) == filled.recall(limit=None)
    for limit in (0, -1, True, 1.5, float("nan"), float("inf"), "3", -(10**5000)):
        with pytest.raises(DataError, match=r"limit: .* is not a count"):
            filled.recall(limit=limit)  # type: ignore[arg-type]


def test_what_was_written_is_read_without_waiting(store: str) -> None:
    with TraceMemory(store, entity="acme") as memory:
        for number in range(300):
            memory.step("count", number)
            if number % 50 == 0:
                assert memory.recall(limit=1)[0].value == number
        assert [event.value for event in memory.recall(limit=None)] == list(range(300))


def test_threads_share_a_memory(store: str) -> None:
    with TraceMemory(store, entity="acme") as memory:
        threads = [
            threading.Thread(target=lambda part=part: [memory.step(f"part {part}", n) for n in range(50)])
            for part in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for part in range(4):
            assert [event.value for event in memory.recall(key=f"part {part}")] == list(range(50))


def test_an_id_that_was_used_adds_nothing(store: str) -> None:
    with TraceMemory(store, entity="acme", process="planner") as memory:
        memory.step("first", id="one")
        memory.step("second", id="one")
        assert [event.key for event in memory.recall()] == ["first"]
        with TraceMemory(store, entity="acme", process="other") as other:
            other.step("theirs", id="one")
            assert [event.key for event in other.recall()] == ["theirs"]


def test_a_decorated_tool_records_its_calls(store: str) -> None:
    with TraceMemory(store, entity="acme") as memory:

        @memory.tool
        def get_price(part: str, *, many: int = 1) -> dict[str, object]:
            if part == "none":
                raise KeyError(part)
            return {"price": 3 * many, "seen": object}

        assert get_price("HX-20", many=2)["price"] == 6
        with pytest.raises(KeyError):
            get_price("none")
        good, bad = memory.recall()
        assert good.key == "get_price"
        assert good.metadata["arguments"] == {"part": "HX-20", "many": 2}
        assert good.metadata["seconds"] >= 0
        assert "price" in good.value
        assert (bad.metadata["status"], bad.value) == ("error", "KeyError: 'none'")


def test_a_credential_is_not_stored(tmp_path: Path) -> None:
    with TraceMemory(tmp_path / "e.db", entity="acme") as memory:
        memory.tool_call("login", {"api_key": "kolibri-123456"}, "Bearer abcdefgh12345678")
        memory.message("user", "my key is sk-abcdefgh1234")
        memory.flush()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"kolibri" not in stored
    assert b"abcdefgh1234" not in stored
    with TraceMemory(":memory:", entity="acme", redaction=None) as verbatim:
        verbatim.message("user", "my key is sk-abcdefgh1234")
        assert verbatim.recall()[0].value == "my key is sk-abcdefgh1234"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.step("a\0b"), "NUL"),
        (lambda m: m.step(""), "not empty"),
        (lambda m: m.step("x" * 201), "at most 200"),
        (lambda m: m.step("x", {"a": object()}), "JSON"),
        (lambda m: m.step("x", float("nan")), "JSON"),
        (lambda m: m.step("x", nested(5000)), "nested more than 200 levels"),
        (lambda m: m.step("x", nested(201)), "nested more than 200 levels"),
        (lambda m: m.tool_call("x", {"a": nested(5000)}), "nested more than 200 levels"),
        (lambda m: m.add_messages([{"role": "user", "content": {"a": nested(5000)}}]), "nested too deep"),
        (lambda m: m.add([Event("i", "step", "k", 1, metadata=[1])]), "metadata: is a list"),
        (lambda m: m.decision("x", "y", confidence=1.5), "confidence"),
        (lambda m: m.decision("x", "y", confidence="high"), "confidence"),
        (lambda m: m.step("x", time="yesterday"), "not a time"),
        *(
            (lambda m, t=moment: m.step("x", time=t), "time: .* is not a time of the years 1 to 9999")
            for moment in (float("inf"), float("nan"), 1e300, -1e300, 1e12, 10**5000, True, [])
        ),
        (lambda m: m.recall(since=1e300), "since: 1e[+]300 is not a time"),
        (lambda m: m.add_messages([{"role": "user", "content": "hi"}], time=10**400), "time: 1000000.* is not a time"),
        (lambda m: m.recall(key=5), "key: 5 is not a name"),
        (lambda m: m.recall(key=[None]), "key: None is not a text"),
        (lambda m: m.recall(key={"a": 1}), "key: .* is not a name"),
        (lambda m: m.recall(key=["k"] * 40_000), "key: has 40000 names; give at most 10000"),
        (lambda m: m.recall(project=10**30), "project: .* is not a text"),
        (lambda m: m.recall(mentions=["a"]), "mentions: .* is not a text"),
        (lambda m: m.recall(scope="world"), "scope"),
        (lambda m: m.recall(typ="step"), "typ: unknown filter; choose type, key, .*mentions"),
        (lambda m: m.recall(type="toolcall"), "type: 'toolcall' is not an event type; choose one of tool_call"),
        (lambda m: m.recall(type=["step", "steps"]), "type: 'steps' is not an event type"),
        (lambda m: m.recall(since="yesterday"), "since: 'yesterday' is not a time"),
        (lambda m: m.step("x", synk=True), "synk: unknown argument; choose id, time, .*sync"),
        (lambda m: m.add([Event("i", "dance", "k", 1)]), "not an event type"),
        (lambda m: TraceMemory(":memory:", entity=""), "entity"),
    ],
)
def test_what_no_store_can_hold_is_refused_at_once(call: object, said: str) -> None:
    with TraceMemory(":memory:", entity="acme") as memory:
        with pytest.raises(DataError, match=said):
            call(memory)  # type: ignore[operator]
        assert memory.recall() == []


@pytest.mark.parametrize("moment", [1e300, float("nan"), 10**400])
def test_a_clock_that_tells_no_time_is_refused(moment: float) -> None:
    with TraceMemory(":memory:", entity="acme", clock=lambda: moment) as memory:
        with pytest.raises(DataError, match="not a time of the years"):
            memory.step("x")
        assert memory.recall() == []


def test_an_event_of_no_time_that_a_store_holds_is_read(tmp_path: Path) -> None:
    """An earlier memtune let it in."""
    with TraceMemory(tmp_path / "e.db", entity="acme") as memory:
        memory.step("x", sync=True)
    with sqlite3.connect(tmp_path / "e.db") as connection:
        connection.execute("UPDATE event_rows SET time = 1e300")
    connection.close()
    with TraceMemory(tmp_path / "e.db", entity="acme") as memory:
        assert [event.line().strip() for event in memory.recall()] == ["step x: ok, none"]


def test_a_tool_whose_values_have_no_text_goes_on(store: str) -> None:
    class Mute:
        def __str__(self) -> str:
            raise OSError

    with TraceMemory(store, entity="acme") as memory:
        tool = memory.tool(lambda value: value)
        for value in (nested(5000), Mute()):
            assert tool(value) is value
        assert "str raised" in str([event.value for event in memory.recall()])


def test_any_text_comes_back_as_it_was(store: str) -> None:
    hostile = ["'; DROP TABLE event_rows; --", "100 % sure?", "a\0b", "\ud800 half", "雪", "x" * 100_000, '"', "\\"]
    with TraceMemory(store, entity="o'brien; --", process='"p"') as memory:
        for text in hostile:
            memory.step("say", {"text": text, text[:20]: [text]})
        events = memory.recall()
        assert [event.value for event in events] == [{"text": text, text[:20]: [text]} for text in hostile]
        for text in hostile[:2]:
            assert len(memory.recall(mentions=text)) == 1
            assert memory.recall(key=text) == memory.recall(session=text) == memory.recall(process=text) == []


def test_search_is_by_meaning_within_the_filters(store: str) -> None:
    vectors = WordVectors()
    with TraceMemory(store, entity="acme", session="s1", embedding=vectors) as memory:
        memory.message("Ingrid", "The bearings squeak when it rains.", id="squeak")
        memory.message("Ole", "Lunch is at noon.", id="lunch")
        memory.tool_call("get_stock", {"part": "bearings"}, {"left": 3}, id="stock")
        assert ids(memory.search("bearings squeak rains", limit=2)) == ["squeak", "stock"]
        assert ids(memory.search("bearings squeak rains", type="tool_call")) == ["stock"]
        memory.message("Ingrid", "The bearings squeak when it snows.", id="snow")
        assert ids(memory.search("bearings squeak snows", limit=1)) == ["snow"], "it did not read its own write"
        assert len(vectors.embedded) == 4, "an event was embedded twice"
        memory.search("lunch", session="other")
        assert len(vectors.embedded) == 4
        assert len(memory.search("lunch", limit=10**30)) == len(memory.search("lunch", limit=None)) == 4


def test_search_without_an_embedding_says_how_to_have_one() -> None:
    with TraceMemory(":memory:", entity="acme") as memory, pytest.raises(ConfigError, match="embedding="):
        memory.search("x")


def test_nothing_is_stored_twice(tmp_path: Path) -> None:
    """One row an event; what finds it by meaning refers to it and holds no text."""
    marker = "quillon-escutcheon"
    with TraceMemory(tmp_path / "e.db", entity="acme", embedding=WordVectors()) as memory:
        memory.message("Ingrid", f"The {marker} is loose.")
        memory.search(marker)
    connection = sqlite3.connect(tmp_path / "e.db")
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    held = [str(row) for table in tables for row in connection.execute(f"SELECT * FROM {table}")]  # noqa: S608
    connection.close()
    assert sum(row.count(marker) for row in held) == 1
    assert len(held) == 2


def test_it_is_there_for_an_agent_alone() -> None:
    """`from memtune import TraceMemory` loads nothing heavy, and importing memtune loads no trace memory."""
    code = (
        "import sys, memtune; early = 'tracing.trace_memory' in sys.modules\n"
        "from memtune import TraceMemory\n"
        "with TraceMemory(':memory:', entity='a') as memory:\n"
        "    memory.step('x'); memory.recall()\n"
        "heavy = {'pydantic', 'numpy', 'openai', 'psycopg', 'networkx', 'mlflow'} & set(sys.modules)\n"
        "ours = [name for name in sys.modules if name.startswith(('tracing.llm', 'tracing.systems'))]\n"
        "print(early, sorted(heavy), ours)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False [] []"


def test_a_file_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE event_rows (x)")
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        TraceMemory(path, entity="acme")
    (tmp_path / "text.db").write_text("no database" * 200)
    with pytest.raises(StoreError, match=r"text\.db.*give another file"):
        TraceMemory(tmp_path / "text.db", entity="acme")
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)
    connection.close()


def test_an_address_of_another_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="postgresql://"):
        TraceMemory("mysql://x", entity="acme")


def test_a_store_without_a_name_is_refused() -> None:
    """SQLite takes an empty path for a file that it deletes when it is closed."""
    with pytest.raises(ConfigError, match="path of a SQLite file"):
        TraceMemory("", entity="acme")
