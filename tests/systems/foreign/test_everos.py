"""EverOS, the real server: it passes the conformance suite, and what it asks, stores and finds is seen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of

from attribution.cases import Case
from attribution.judging.words import judge
from attribution.survival.survival_method import attribute
from experiments.systems.everos.exporter import EverOsSlots
from experiments.systems.everos.prompts import PROMPTS, SLOTS
from experiments.systems.worker.isolated import environment_of
from tracing.errors import BudgetExceededError, CallFailedError, ContractError, InstallError, MemorySystemError
from tracing.graph.elements import Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.recording.trace_context import session, trace
from tracing.systems.conformance import SMALL_TALK, MemorySystemConformance
from tracing.systems.conversations import Conversation
from tracing.systems.interventions import Intervention, Step, intervene
from tracing.systems.prompts import baseline_candidate
from tracing.systems.protocol import Memory, MemorySystem
from tracing.systems.registry import SYSTEMS, open_system

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

Open = Callable[..., ModelAccess]
BASELINE = baseline_candidate(PROMPTS)


def told(request: str) -> list[str]:
    """What is said in a request for an episode."""
    lines = [line.strip() for line in request.splitlines()]
    return [line.removeprefix('"content": ') for line in lines if line.startswith('"content": ')]


def whole(body: Mapping[str, Any]) -> str:
    """One episode a session, which says all that was said; two facts of each; the first memory is the answer."""
    request = prompt_of(dict(body))
    if '"boundaries"' in request:
        return json.dumps({"reasoning": "one", "boundaries": [], "should_wait": False})
    if "EPISODE_TEXT" in request:
        return json.dumps({"atomic_facts": {"time": "now", "atomic_fact": ["A fact of it.", "Another one."]}})
    if '"title"' in request:
        return json.dumps({"title": "What was said", "content": " ".join(told(request))})
    return next((line[2:] for line in request.splitlines() if line.startswith("- ")), "unknown")


@pytest.fixture(autouse=True)
def _installed(environments: Callable[[str], None]) -> None:
    try:
        environments("everos")
    except InstallError as error:
        if "needs Python" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.thorough
class TestEverOs(MemorySystemConformance):
    @pytest.fixture(autouse=True)
    def _models(self, scripted_server: ScriptedServer, open_access: Open) -> None:
        scripted_server.script = whole
        self.opened = open_access(cache=False)

    def access(self) -> ModelAccess:
        return self.opened

    def system(self) -> MemorySystem:
        return open_system("everos")


def build(access: ModelAccess, conversation: Conversation = SMALL_TALK) -> tuple[Memory, ExecutionGraph]:
    with trace(prefix="b") as recorder:
        memory = open_system("everos").build(conversation, BASELINE, access)
    return memory, recorder.graph


def test_what_everos_asks_and_stores_is_recorded_and_a_re_run_asks_nothing_new(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = whole
    first, second = SMALL_TALK.sessions
    first = first.model_copy(update={"time": "10 am on 4 March, 2024"})
    talk = SMALL_TALK.model_copy(update={"sessions": (first, second)})
    memory, graph = build(open_access(), talk)
    one = ["detect_boundaries", "extract_episode", "store", "extract_facts", "store", "store", "embed"]
    assert [op.name for op in graph.operations.values()] == [*one, *one]
    entries = memory.state["entries"]
    assert [(entry["id"], entry["parent"]) for entry in entries] == [
        ("e1", ""),
        ("f1", "e1"),
        ("f2", "e1"),
        ("e2", ""),
        ("f3", "e2"),
        ("f4", "e2"),
    ]
    assert entries[0]["text"] == " ".join(turn.text for turn in SMALL_TALK.sessions[0].turns)
    assert entries[0]["time"].startswith("2024-03-04T10:00:0")
    behind = graph.backward_slice(entries[0]["variable"]).variables.values()
    assert {"D1:1", "D1:2", "boundary_detection", "episode_extract"} <= {one.name for one in behind}
    asked = SMALL_TALK.questions[0]
    answer = open_system("everos").answer(memory, asked, BASELINE, open_access())
    made = (scripted_server.count, len(scripted_server.embedding_requests))
    again, _ = build(open_access(), talk)
    assert again.state == memory.state
    assert open_system("everos").answer(again, asked, BASELINE, open_access()).text == answer.text
    assert (scripted_server.count, len(scripted_server.embedding_requests)) == made


def test_a_value_that_the_episode_lost_is_its_prompts_fault(scripted_server: ScriptedServer, open_access: Open) -> None:
    def forgetful(body: Mapping[str, Any]) -> str:
        reply = whole(body)
        lost = reply.replace("yellow", "some colour").replace("Yellow", "Some colour")
        return lost if '"title"' in prompt_of(dict(body)) else reply

    scripted_server.script = forgetful
    system, access = open_system("everos"), open_access()
    asked = SMALL_TALK.questions[0].model_copy(update={"evidence": ("D2:1",)})
    with trace(prefix="b") as building:
        memory = system.build(SMALL_TALK, BASELINE, access)
    with trace(prefix="a") as answering:
        answering.adopt(building.records())
        with session(asked.id):
            answer = system.answer(memory, asked, BASELINE, access)
    graph = building.graph.merge(answering.graph)
    case = Case(SMALL_TALK.id, asked, answer.text, judge(answer.text, asked.answers), answer.variable)
    (blame,) = attribute(case, graph, SMALL_TALK, system.operations).decisive
    assert (blame.operation, blame.error_type) == ("extract_episode", "ExtractionError")


def test_a_memory_and_its_search_have_nothing_of_another_conversation(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = whole
    data = json.loads(SMALL_TALK.model_dump_json().replace("cottage", "houseboat").replace("green", "red"))
    other, access = Conversation.model_validate({**data, "id": "other"}), open_access()
    (first, _), (second, _) = build(access), build(access, other)
    assert "houseboat" not in json.dumps(first.state)
    assert "cottage" not in json.dumps(second.state)
    for memory, foreign in ((first, "houseboat"), (second, "cottage"), (first, "houseboat")):
        with trace() as recorder:
            open_system("everos").answer(memory, SMALL_TALK.questions[0], BASELINE, access)
        found = [one.value for one in recorder.graph.find_variables(kind="context")]
        assert found
        assert not any(foreign in str(value) for value in found)


@pytest.mark.parametrize(
    "failing",
    ["EPISODE_TEXT", *(pytest.param(each, marks=pytest.mark.thorough) for each in ('"boundaries"', '"title"'))],
)
def test_a_failure_that_everos_swallows_leaves_the_build(
    scripted_server: ScriptedServer, open_access: Open, failing: str
) -> None:
    scripted_server.script = lambda body: Reply("down", status=500) if failing in prompt_of(body) else whole(body)
    with pytest.raises(CallFailedError):
        build(open_access(retries=0))


@pytest.mark.thorough
def test_a_spent_budget_leaves_the_build_as_such(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = whole
    with pytest.raises(BudgetExceededError):
        build(open_access(Limits(calls=2), cache=False))


@pytest.mark.thorough
def test_a_reply_that_everos_refuses_ends_the_build_in_one_line(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = lambda body: "no JSON"
    with pytest.raises(MemorySystemError) as error:
        build(open_access())
    assert "\n" not in str(error.value)


@pytest.mark.thorough
def test_everos_sends_the_exported_texts_with_the_conversation(tmp_path: Path) -> None:
    awkward = ' Mind {{"braces"}}, $5, 100 %,\ttabs and «é».\n'
    candidate = {name: text + awkward if name in SLOTS else text for name, text in BASELINE.items()}
    exporter = EverOsSlots()
    exporter.write(candidate, tmp_path)
    proof = exporter.prove(tmp_path)
    assert [said.partition(":")[0] for said in proof] == list(SLOTS)
    assert all("in the user message of everos 1.5.1's" in said for said in proof)
    slot = tmp_path / "prompt_slots" / "episode_extract.yaml"
    slot.write_text(slot.read_text().replace("enabled: true", "enabled: false"))
    with pytest.raises(ContractError, match=r"episode_extract: everos 1\.5\.1 does not send it"):
        exporter.prove(tmp_path)


def test_the_texts_that_everos_ships_are_read_where_a_slot_is_not_enabled(tmp_path: Path) -> None:
    (tmp_path / "boundary_detection.yaml").write_text('enabled: false\ntemplate: ""\n')
    exporter = EverOsSlots()
    texts = exporter.texts(str(tmp_path))
    assert texts == exporter.defaults()
    for name, text in texts.items():
        contract = PROMPTS[name].contract
        template = exporter.template(text, contract.placeholders)
        assert contract.violations(template) == []
        assert template == text


def test_the_server_ends_with_the_process_that_started_it() -> None:
    environment = environment_of(SYSTEMS.open("everos"))
    assert environment is not None
    program = (
        "import sys\n"
        "from experiments.systems.everos.server import Server\n"
        "server = Server({}, chat=None)\n"
        "print(server._process.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [environment.interpreter, "-I", "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        os.kill(pid, 0)
        host.send_signal(signal.SIGKILL)
    until = time.monotonic() + 30
    while _runs(pid):
        assert time.monotonic() < until, "the server outlived its host"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Told(Intervention):
    """Every extraction also says that a kestrel nests in the cottage, as a repair of it would."""

    def extracted(self, step: Step, messages: Sequence[Variable], statements: list[str]) -> list[str]:
        return [*statements, "A kestrel nests in the cottage."] if step.operation == "extract_episode" else statements


class Lost(Intervention):
    """What is said of the colour yellow is left out of episodes."""

    def extracted(self, step: Step, messages: Sequence[Variable], statements: list[str]) -> list[str]:
        return [text for text in statements if "yellow" not in text]


def test_a_line_of_an_episode_is_a_statement_of_its_own(scripted_server: ScriptedServer, open_access: Open) -> None:
    def in_lines(body: Mapping[str, Any]) -> str:
        request = prompt_of(dict(body))
        if '"title"' in request and "EPISODE_TEXT" not in request:
            return json.dumps({"title": "What was said", "content": "\n".join(told(request))})
        return whole(body)

    scripted_server.script = in_lines
    with intervene(Lost()):
        memory, _ = build(open_access())
    said = [turn.text for dialogue in SMALL_TALK.sessions for turn in dialogue.turns]
    episodes = [entry["text"] for entry in memory.state["entries"] if not entry["parent"]]
    assert "\n".join(episodes).splitlines() == [text for text in said if "yellow" not in text] != said


def test_a_repaired_extraction_is_what_everos_stores_and_finds(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = whole
    access = open_access()
    with intervene(Told()):
        memory, _ = build(access)
    assert "A kestrel nests" in json.dumps(memory.state["entries"])
    asked = SMALL_TALK.questions[0].model_copy(update={"question": "Where does the kestrel nest?"})
    with trace() as recorder:
        open_system("everos").answer(memory, asked, BASELINE, access)
    assert any("kestrel" in str(one.value) for one in recorder.graph.find_variables(kind="context"))


def test_a_users_own_time_zone_and_limits_count(scripted_server: ScriptedServer, open_access: Open) -> None:
    """Times are told in the zone, and a session longer than the limit is read in parts."""
    scripted_server.script = whole
    config = {"memory": {"timezone": "Asia/Tokyo"}, "boundary_detection": {"hard_msg_limit": 3}}
    system = open_system("everos", {"config": config})
    conversation = SMALL_TALK.model_copy(update={"sessions": SMALL_TALK.sessions[:1]})
    memory = system.build(conversation, BASELINE, open_access())
    entries = memory.state["entries"]
    assert all(entry["time"].endswith("+09:00") for entry in entries), entries
    turns = len(conversation.sessions[0].turns)
    assert sum(entry["kind"] == "episode" for entry in entries) == -(-turns // 2)
    plain = open_system("everos").build(conversation, BASELINE, open_access()).state["entries"]
    assert all(entry["time"].endswith(("+00:00", "Z")) for entry in plain), plain
