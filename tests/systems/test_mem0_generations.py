"""Mem0 0.1, 1.0 and 2, each the real library in its own environment: all pass the conformance suite so."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mem0_model import Mem0Model, decide, is_update
from scripted_server import Reply, ScriptedServer, prompt_of

from experiments.systems.worker.handle import close_pools
from experiments.systems.worker.isolated import environment_of
from optimizer.evaluation.evaluator import Evaluator
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import trace
from tracing.systems.conformance import SMALL_TALK, MemorySystemConformance
from tracing.systems.conversations import Conversation
from tracing.systems.entries import Entry
from tracing.systems.interventions import Intervention, Step, intervene
from tracing.systems.protocol import MemorySystem
from tracing.systems.registry import open_system

Open = Callable[..., ModelAccess]

pytestmark = pytest.mark.slow


class AddingModel:
    """Understands the one request of Mem0 2.x: each new message becomes a memory."""

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        said = prompt_of(body)
        if "## New Messages" not in said:
            return Mem0Model()(body)
        block = said.split("## New Messages\n")[1].split("\n\n## Observation Date")[0]
        lines = [line.removeprefix("user: ") for line in block.splitlines() if line.strip()]
        return json.dumps({"memory": [{"id": str(n), "text": line} for n, line in enumerate(lines)]})


def conversation_with(name: str, speaker: str, text: str) -> Conversation:
    turn = {"id": "D1:1", "speaker": speaker, "text": text}
    asked = {"id": "q1", "question": f"{speaker}: what colour is my darling?", "answers": ["vermilion"]}
    sessions = [{"id": "D1", "time": "2024-03-04 10:00", "turns": [turn]}]
    given = {"id": name, "speakers": [speaker], "sessions": sessions, "questions": [asked]}
    return Conversation.model_validate(given)


class _InItsEnvironment(MemorySystemConformance):
    name: str
    model: Callable[[dict[str, Any]], Reply | str]

    @pytest.fixture(autouse=True)
    def _models(self, environments: Callable[[str], None], scripted_server: ScriptedServer, open_access: Open) -> None:
        environments(self.name)
        scripted_server.script = self.model
        self.opened = open_access(cache=False)

    def access(self) -> ModelAccess:
        return self.opened

    def system(self) -> MemorySystem:
        return open_system(self.name)


class TestMem0Two(_InItsEnvironment):
    name = "mem0@2"
    model = staticmethod(AddingModel())


@pytest.mark.thorough
class TestMem0First(_InItsEnvironment):
    name = "mem0@0.1"
    model = staticmethod(Mem0Model())


@pytest.mark.thorough
class TestMem0One(_InItsEnvironment):
    name = "mem0@1.0"
    model = staticmethod(Mem0Model())


MODELS = {"mem0@0.1": Mem0Model, "mem0@1.0": Mem0Model, "mem0@2": AddingModel}
NAMES = [*(pytest.param(name, marks=pytest.mark.thorough) for name in ("mem0@0.1", "mem0@1.0")), "mem0@2"]
PARROTS = conversation_with("parrots", "Nora", "My parrot Zibbel is vermilion.")
TRUCKS = conversation_with("trucks", "Otto", "My truck Brumm is ochre.")


@pytest.mark.parametrize("name", NAMES)
def test_two_tenants_never_see_each_others_memories(
    name: str, environments: Callable[[str], None], scripted_server: ScriptedServer, open_access: Open
) -> None:
    environments(name)
    scripted_server.script = MODELS[name]()
    system, access = open_system(name), open_access(cache=False)
    seed = {prompt: spec.text for prompt, spec in system.prompts.items()}
    memories = {talk.id: system.build(talk, seed, access) for talk in (PARROTS, TRUCKS)}
    for talk, others in ((PARROTS, "Brumm"), (TRUCKS, "Zibbel"), (PARROTS, "Brumm")):
        asked = len(scripted_server.requests)
        system.answer(memories[talk.id], talk.questions[0], seed, access)
        (request,) = scripted_server.requests[asked:]
        assert talk.sessions[0].turns[0].text in prompt_of(request)
        assert others not in prompt_of(request)
        assert others not in json.dumps(memories[talk.id].state)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_run_again_makes_no_new_call(
    name: str, environments: Callable[[str], None], scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    environments(name)
    scripted_server.script = MODELS[name]()
    seed = {prompt: spec.text for prompt, spec in open_system(name).prompts.items()}

    def evaluated(folder: str) -> list[list[str]]:
        evaluator = Evaluator(open_system(name), open_access(concurrency=2), "contains", snapshots=tmp_path / folder)
        outcomes = evaluator.evaluate(seed, [SMALL_TALK, PARROTS])
        assert [outcome.tainted for outcome in outcomes] == [None, None]
        return [[case.reply for case in outcome.cases] for outcome in outcomes]

    first = evaluated("a")
    made = scripted_server.asked, len(scripted_server.embedding_requests)
    assert min(made) > 3
    close_pools()
    assert evaluated("b") == first
    assert (scripted_server.asked, len(scripted_server.embedding_requests)) == made


@pytest.mark.parametrize(("tuned", "where"), [("system", 0), ("instructions", 1)])
def test_a_prompt_of_2_x_is_sent_where_its_setting_says(
    tuned: str,
    where: int,
    environments: Callable[[str], None],
    scripted_server: ScriptedServer,
    open_access: Open,
) -> None:
    environments("mem0@2")
    scripted_server.script = AddingModel()
    system = open_system("mem0@2", {"tuned": tuned})
    seed = {name: f"{spec.text} Mind the {{{{kestrel}}}}." for name, spec in system.prompts.items() if spec.builds}
    system.build(SMALL_TALK, {**seed, "answer": "x"}, open_access())
    sent = scripted_server.requests[0]["messages"]
    assert [("Mind the {kestrel}." in message["content"]) for message in sent] == [where == 0, where == 1]
    assert ("Memory Extractor" in sent[0]["content"]) == (tuned == "instructions")
    assert "## Current Date\n2024-03-04" in sent[1]["content"]


@pytest.mark.parametrize(
    "reply", ["", "I store nothing.", '["Birte plays"]', '{"memory": ["Birte plays"]}', '{"facts": ["x"]}']
)
def test_a_reply_that_2_x_cannot_use_stores_nothing_and_is_told_as_malformed(
    reply: str, environments: Callable[[str], None], scripted_server: ScriptedServer, open_access: Open
) -> None:
    environments("mem0@2")
    scripted_server.script = lambda body: reply
    system = open_system("mem0@2")
    with trace() as recorder:
        memory = system.build(SMALL_TALK, {name: spec.text for name, spec in system.prompts.items()}, open_access())
    assert memory.state["entries"] == []
    made = recorder.graph.find_operations(name="extract_facts")
    assert all("malformed" in op.attributes for op in made)
    assert len(made) == 2


def test_interventions_reach_the_extraction_and_the_search_of_2_x(
    environments: Callable[[str], None], scripted_server: ScriptedServer, open_access: Open
) -> None:
    class Swap(Intervention):
        def extracted(self, step: Step, messages: Any, statements: list[str]) -> list[str]:
            return [text.replace("bassoon", "triangle") for text in statements]

        def retrieved(self, step: Step, query: Any, entries: Any, found: list[Entry]) -> list[Entry]:
            return [entry for entry in entries if "triangle" in entry.text]

    environments("mem0@2")
    scripted_server.script = AddingModel()
    system, access = open_system("mem0@2"), open_access()
    seed = {name: spec.text for name, spec in system.prompts.items()}
    with intervene(Swap()):
        memory = system.build(SMALL_TALK, seed, access)
        system.answer(memory, SMALL_TALK.questions[0], seed, access)
    assert any("triangle" in entry["text"] for entry in memory.state["entries"])
    assert "bassoon" not in json.dumps(memory.state)
    assert "triangle" in prompt_of(scripted_server.requests[-1])
    assert "yellow" not in prompt_of(scripted_server.requests[-1])


def test_2_x_drops_a_fact_that_it_has_already(
    environments: Callable[[str], None], scripted_server: ScriptedServer, open_access: Open
) -> None:
    environments("mem0@2")
    scripted_server.script = lambda body: '{"memory": [{"text": "Birte plays bassoon."}]}'
    system = open_system("mem0@2")
    with trace() as recorder:
        memory = system.build(SMALL_TALK, {name: spec.text for name, spec in system.prompts.items()}, open_access())
    assert [entry["text"] for entry in memory.state["entries"]] == ["Birte plays bassoon."]
    assert len(recorder.graph.find_operations(name="extract_facts")) == 2
    (store,) = recorder.graph.find_operations(name="store")
    assert [recorder.graph.variables[vid].name for vid in store.input_ids()] == ["fact1"]


@pytest.mark.parametrize("name", [pytest.param("mem0@0.1", marks=pytest.mark.thorough), "mem0@2"])
def test_somebodys_own_mem0_is_recorded(
    name: str, environments: Callable[[str], None], scripted_server: ScriptedServer
) -> None:
    environments(name)
    environment = environment_of(open_system(name))
    assert environment is not None
    text = "Mara moved to Oslo."
    extraction = json.dumps({"facts": [text], "memory": [{"id": "0", "text": text}]})
    scripted_server.script = lambda body: decide("ADD")(body) if is_update(body) else extraction
    command = [environment.interpreter, "-I", Path(__file__).with_name("recorded_mem0.py"), scripted_server.base_url]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    sync, awaited = json.loads(done.stdout.splitlines()[-1])
    entry, decision = [text], [{"event": "ADD", "target": None, "text": text}]
    both = [["messages", "D1:1"], ["messages", "D1:2"]]
    deciding = [["update_memory", [], [], []], ["decide_update", [], entry, decision]] if name == "mem0@0.1" else []
    assert sync == [
        ["add", both, [], []],
        ["extract_facts", both, [], entry],
        *deciding,
        ["store", [], entry, entry],
        ["retrieve", [], [], entry],
        ["answer", [], [], ["yes"]],
    ]
    assert [one[0] for one in awaited] == [one[0] for one in sync[:-1]]
    assert awaited[1][1:] == [both[:1], [], entry]
