"""A memory system of one's own comes in by `module:Object` or an entry point; what is none is refused in one line."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from own_parts import SYSTEM, install, write_module

from tracing.errors import ConfigError, MemorySystemError
from tracing.plugins import code_of
from tracing.systems.calls import answer_question, build_memory
from tracing.systems.conformance import SMALL_TALK, MemorySystemConformance
from tracing.systems.description import describe
from tracing.systems.protocol import Answer, BuildsFromFacts, Memory, MemorySystem
from tracing.systems.registry import SYSTEMS, caveats_of, open_system

_names = (f"own_system_{number}" for number in itertools.count())


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a module that is nowhere yet; it belongs into the current folder."""
    monkeypatch.chdir(tmp_path)
    return next(_names)


@pytest.mark.parametrize("part", ["Keeper", "make", "made"])
def test_a_class_a_function_and_an_instance_are_systems(own: str, part: str, tmp_path: Path) -> None:
    write_module(tmp_path, own)
    system = open_system(f"{own}:{part}")
    assert isinstance(system, MemorySystem)
    assert not isinstance(system, BuildsFromFacts)
    said = describe(system)
    assert (said.name, said.version, said.settings) == (f"{own}:Keeper", "0", {})
    assert caveats_of(f"{own}:{part}", {}, embedded=True) == []


def test_an_entry_point_is_a_system_by_its_name(own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_module(tmp_path / "site", own)
    install(tmp_path / "site", "memtune.systems", "keeper", f"{own}:Keeper")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert "keeper" in SYSTEMS.names()
    assert isinstance(open_system("keeper"), MemorySystem)


def test_the_code_of_a_users_system_tells_its_memories_apart(own: str, tmp_path: Path) -> None:
    path = write_module(tmp_path, own)
    before = SYSTEMS.code(f"{own}:Keeper")
    del sys.modules[own]
    path.write_text(SYSTEM + "\n# changed\n")
    after = SYSTEMS.code(f"{own}:Keeper")
    assert before is not None
    assert before != after
    assert describe(open_system(f"{own}:made")).code == after
    assert SYSTEMS.code("rag") is None
    assert code_of(open_system("fact-memory")) is None


BROKEN = {
    "no module": ("", "{own}:Keeper", "no module '{own}'"),
    "no object": (SYSTEM, "{own}:Keepr", "Keepr"),
    "its import fails": ("import nowhere_at_all", "{own}:Keeper", "no module 'nowhere_at_all'"),
    "its syntax is wrong": ("class Keeper(:\n", "{own}:Keeper", "cannot be imported: SyntaxError"),
    "its import ends the program": ("raise SystemExit('usage: keeper')", "{own}:Keeper", "SystemExit: usage: keeper"),
    "an object without build": (
        "class Keeper:\n    prompts = {}\n",
        "{own}:Keeper",
        "a Keeper without build, answer is not a memory system",
    ),
    "an object without operations": (
        SYSTEM.replace("    operations =", "    steps ="),
        "{own}:Keeper",
        "without operations",
    ),
    "a number": ("Keeper = 3", "{own}:Keeper", "a int without prompts"),
    "it cannot be made": ("def Keeper():\n    raise KeyError('no\\nkey')", "{own}:Keeper", "cannot be made: KeyError"),
    "its baseline breaks the contract": (
        SYSTEM.replace("Asked: {asked}", "Asked:"),
        "{own}:Keeper",
        "the baseline prompt reply breaks its contract: the placeholder {asked} is missing",
    ),
    "its prompt is no file name": (
        SYSTEM.replace('"reply"', '"../reply"'),
        "{own}:Keeper",
        "'../reply' is a file in a",
    ),
    "an operation is not listed": (
        SYSTEM.replace('OperationSpec("reply", "answer", "reply")', 'OperationSpec("say", "answer", None)'),
        "{own}:Keeper",
        "prompt reply names the operation reply, which is not listed",
    ),
    "a name of no system": (SYSTEM, "keper", "unknown: 'keper'; choose one of fact-memory, rag, mem0"),
    "its description raises": (
        SYSTEM + "\nclass Broken(Keeper):\n    @property\n    def version(self):\n        raise ValueError('v')\n",
        "{own}:Broken",
        "ValueError: v",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_system_is_refused_in_one_line_that_names_it(own: str, case: str, tmp_path: Path) -> None:
    text, name, complaint = BROKEN[case]
    if text:
        write_module(tmp_path, own, text)
    named = name.replace("{own}", own)
    with pytest.raises(ConfigError) as caught:
        open_system(named)
    said = str(caught.value)
    assert named in said
    assert complaint.replace("{own}", own) in said
    assert "\n" not in said


def test_a_broken_entry_point_is_named_with_its_distribution(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_module(tmp_path / "site", own, "raise RuntimeError('licence expired')")
    install(tmp_path / "site", "memtune.systems", "keeper", f"{own}:Keeper")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(ConfigError, match=r"keeper.*keeper-dist.*RuntimeError: licence expired"):
        open_system("keeper")
    assert isinstance(open_system("rag"), MemorySystem)


def test_a_report_of_a_run_whose_system_is_gone_says_so(own: str) -> None:
    (caveat,) = caveats_of(f"{own}:Keeper", {}, embedded=False)
    assert f"no module '{own}'" in caveat
    assert caveat.startswith("The memory system could not be asked")


SETTINGS = {
    "unknown": ("make", {"sise": 4}, "system_settings.sise: unknown to"),
    "of the wrong type": ("make", {"size": "four"}, "system_settings.size: a value of type int"),
    "of an object that is made": ("made", {"size": 4}, "made already"),
    "missing": ("needs", {}, "system_settings.host: missing"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_a_setting_that_does_not_fit_is_named(own: str, case: str, tmp_path: Path) -> None:
    part, given, complaint = SETTINGS[case]
    write_module(tmp_path, own, SYSTEM + "\n\ndef needs(host, **more):\n    return Keeper()\n")
    with pytest.raises(ConfigError, match=complaint):
        open_system(f"{own}:{part}", given)
    assert isinstance(open_system(f"{own}:needs", {"host": "h", "anything": [1]}), MemorySystem)


class Careless:
    """Does what is wrong in one place."""

    prompts = open_system("rag").prompts
    operations = open_system("rag").operations

    def build(self, conversation, candidate, access):  # type: ignore[no-untyped-def]
        return {"entries": []}

    def answer(self, memory, question, candidate, access):  # type: ignore[no-untyped-def]
        return {}["no such\nkey"]


def test_what_a_system_raises_or_returns_is_told_in_one_line_with_its_place() -> None:
    question = SMALL_TALK.questions[0]
    with pytest.raises(MemorySystemError, match="build returned a dict, not a Memory"):
        build_memory(Careless(), SMALL_TALK, {}, None)  # type: ignore[arg-type]
    with pytest.raises(MemorySystemError) as caught:
        answer_question(Careless(), Memory({}), question, {}, None)  # type: ignore[arg-type]
    assert str(caught.value).startswith("the memory system failed in answer")
    assert f"{Path(__file__).name}:" in str(caught.value)
    assert "KeyError" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert Answer("x").variable is None


class Holding(Careless):
    """Builds a memory with a given state."""

    def __init__(self, state: dict[str, object]) -> None:
        self.state = state

    def build(self, conversation, candidate, access):  # type: ignore[no-untyped-def]
        return Memory(self.state)


def test_a_built_memory_is_what_json_gives_back() -> None:
    """A memory that is stored and loaded answers as one that was just built."""
    system = Holding({"by_turn": {1: "a"}, "pair": (1, 2)})
    assert build_memory(system, SMALL_TALK, {}, None).state == {"by_turn": {"1": "a"}, "pair": [1, 2]}  # type: ignore[arg-type]
    with pytest.raises(MemorySystemError, match=r"build returned a memory whose state is not JSON: .* type set "):
        build_memory(Holding({"seen": {1, 2}}), SMALL_TALK, {}, None)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_suite_names_what_is_wrong_without_pytest(own: str, tmp_path: Path) -> None:
    write_module(tmp_path, own)

    class Suite(MemorySystemConformance):
        def system(self) -> MemorySystem:
            return open_system(f"{own}:Keeper")

    assert Suite().problems() == []

    class Silent(Suite):
        def system(self) -> MemorySystem:
            made = super().system()
            made.operations = (type(made.operations[0])("rank", "retrieve", None), *made.operations)  # type: ignore[misc]
            return made

    (problem,) = Silent().problems()
    assert problem.startswith("every listed operation is recorded: listed, but never recorded: ['rank']")
