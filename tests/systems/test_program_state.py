"""What a program keeps in a variable is another while a memory is built or asked, and is kept with the memory."""

from __future__ import annotations

import json
import sqlite3
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest

from experiments.starter.global_stores import global_stores
from experiments.systems.wrapped.program_state import as_json, from_json
from experiments.systems.wrapped.stores import GlobalStore
from tracing.errors import ConfigError, MemorySystemError


@dataclass
class Fact:
    text: str
    tags: set[str] = field(default_factory=set)


class Kind(StrEnum):
    SAID = "said"


class Told(NamedTuple):
    kind: Kind
    text: str


@dataclass(slots=True)
class Kept:
    text: str
    weight: Decimal


class Store:
    def __init__(self) -> None:
        self.facts: dict[int, Fact] = {}
        self.last = 0
        self.database = sqlite3.connect(":memory:")


class Slotted:
    """As LangGraph's store in memory is one."""

    __slots__ = ("__hidden", "client", "unset")

    def __init__(self) -> None:
        self.__hidden = defaultdict[str, list[Kept]](list)
        self.client = sqlite3.connect(":memory:")

    def put(self, text: str) -> None:
        self.__hidden["me"].append(Kept(text, Decimal(1)))

    def texts(self) -> list[str]:
        return [kept.text for kept in self.__hidden["me"]]


class Other:
    """One that holds itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    module = types.ModuleType("state_program")
    sys.modules["state_program"] = module
    yield module
    del sys.modules["state_program"]


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, None, True, 2.5], 3: ("x", {"y"}), (1, 2): frozenset({4})},
        deque([datetime(2026, 1, 2, tzinfo=UTC), date(2026, 1, 2)]),
        [Fact("Mara sails.", {"b", "a"})],
        {UUID(int=1): Told(Kind.SAID, "Mara sails."), "of": [Kept("a", Decimal("1.50"))]},
    ],
)
def test_a_value_is_the_same_after_json(value: Any) -> None:
    assert from_json(json.loads(json.dumps(as_json(value)))) == value


def test_arrays_and_the_kind_of_a_dict_are_kept() -> None:
    array = from_json(json.loads(json.dumps(as_json(np.array([[1.5, 2]], dtype="float32")))))
    assert (array.dtype, array.tolist()) == (np.float32, [[1.5, 2.0]])
    nested: Any = defaultdict(lambda: defaultdict(list))
    nested["Mara"]["boats"].append("a cutter")
    again = from_json(as_json(nested), defaultdict(nested.default_factory))
    again["Theo"]["vans"].append("sold")
    again["Mara"]["bikes"].append("new")
    assert again["Mara"] == {"boats": ["a cutter"], "bikes": ["new"]}
    for kind in (OrderedDict, Counter):
        for like in (kind(), None):
            again = from_json(as_json(kind({"a": 1})), like)
            assert (type(again), again) == (kind, {"a": 1})


def test_what_is_kept_within_something_else_goes_on_as_it_was() -> None:
    kept = [
        defaultdict(list, a=[1]),
        Counter("aab"),
        deque([1, 2], maxlen=2),
        defaultdict(lambda: 1, a=2),
        np.float64(2),
    ]
    lists, counts, last, other, number = from_json(json.loads(json.dumps(as_json(kept))))
    lists["b"].append(2)
    counts["c"] += 1
    last.append(3)
    assert (lists, counts, list(last)) == ({"a": [1], "b": [2]}, {"a": 2, "b": 1, "c": 1}, [2, 3])
    assert (other, type(number)) == ({"a": 2}, np.float64)


@pytest.mark.parametrize("value", [object(), Other(), {"a": [lambda: 1]}, sqlite3.connect(":memory:")])
def test_what_cannot_be_kept_is_named(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^a "):
        as_json(value)


@pytest.mark.parametrize("begins", [{}, [], set(), deque(), defaultdict(list)])
def test_two_memories_see_nothing_of_each_other_nor_of_the_program(
    begins: Any, module: types.ModuleType, tmp_path: Path
) -> None:
    def put(text: str) -> None:
        value: Any = module.kept
        if isinstance(value, dict):
            value[text] = text
        else:
            (value.add if isinstance(value, set) else value.append)(text)

    module.kept = begins  # type: ignore[attr-defined]
    put("mine")
    store, memories = GlobalStore.at("state_program:kept", "kept.json"), [tmp_path / "a", tmp_path / "b"]
    for memory in memories:
        memory.mkdir()
        with store.within(memory):
            put(memory.name)
    for memory in memories:
        with store.within(memory):
            assert list(module.kept) == [memory.name]
    assert module.kept is begins
    assert list(begins) == ["mine"]


def test_an_object_keeps_what_can_be_and_shares_the_rest(module: types.ModuleType, tmp_path: Path) -> None:
    module.store = own = Store()  # type: ignore[attr-defined]
    database, place = own.database, GlobalStore.at("state_program:store", "store.json")
    for _ in range(2):
        with place.within(tmp_path):
            own.last += 1
            own.facts[own.last] = Fact(f"fact {own.last}")
            assert own.database is database
    assert (own.last, own.facts) == (0, {})
    with place.within(tmp_path):
        assert [fact.text for fact in own.facts.values()] == ["fact 1", "fact 2"]
        own.facts.clear()
    with (
        pytest.raises(MemorySystemError, match=r"state_program:store holds a builtins\.function, which"),
        place.within(tmp_path),
    ):
        own.facts[1] = lambda: 1  # type: ignore[assignment]
    assert own.facts == {}
    module.lock = object()  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"lock is a builtins\.object, and no path"):
        GlobalStore.at("state_program:lock", "lock.json")


def test_an_object_with_slots_is_kept_as_any_other(module: types.ModuleType, tmp_path: Path) -> None:
    langgraph = pytest.importorskip("langgraph.store.memory")
    module.slotted, module.store = Slotted(), langgraph.InMemoryStore()  # type: ignore[attr-defined]
    own, store, client = module.slotted, module.store, module.slotted.client
    own.put("mine")
    places = [GlobalStore.at(f"state_program:{name}", f"{name}.json") for name in ("slotted", "store")]
    for day in (1, 2):
        with places[0].within(tmp_path), places[1].within(tmp_path):
            own.put(f"day {day}")
            store.put(("me", "facts"), f"f{day}", {"text": f"fact {day}"})
            assert own.client is client
    assert (own.texts(), store.search(("me",)), hasattr(own, "unset")) == (["mine"], [], False)
    with places[0].within(tmp_path), places[1].within(tmp_path):
        assert own.texts() == ["mine", "day 1", "day 2"]
        assert [item.value["text"] for item in store.search(("me",))] == ["fact 1", "fact 2"]


PROGRAM = """
import logging, queue
from beside_state import STORE
log = logging.getLogger("x")
NOTES, TOOLS, cache = {}, ["a tool"], None
model_config = {}
class Memory:
    items: list = []
    LIMITS = {"a": 1}
memory = queue.Queue()
memory_prompt = queue.Queue()
def load():
    global cache
    cache = {}
"""


def test_what_lasts_from_one_memory_to_the_next_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "beside_state.py").write_text(
        "class Store:\n    def __init__(self): self.items = []\nSTORE = Store()\n"
    )
    (tmp_path / "lasting_state.py").write_text(
        PROGRAM.replace("NOTES, TOOLS, cache = {}, ", "NOTES = {}\nTOOLS, cache = ")
    )
    __import__("lasting_state")
    stores, lasting = global_stores("lasting_state")
    assert stores == {
        "lasting_state:NOTES": "notes.json",
        "lasting_state:Memory.items": "items.json",
        "beside_state:STORE": "store.json",
    }
    assert lasting == [
        "lasting_state:memory: what this queue.Queue keeps lasts from one memory to the next; make it in `folder`",
        "lasting_state:cache: a function sets it: it lasts from one memory to the next; let build set it",
    ]
