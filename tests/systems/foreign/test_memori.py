"""Memori, the real library: it passes the conformance suite, and what it recalls, stores and confuses is seen."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of

from attribution.cases import Case
from attribution.judging.words import judge
from attribution.survival.survival_method import attribute
from experiments.systems.memori.exporter import MemoriAugmentation
from experiments.systems.memori.ingestion import PROMPTS
from experiments.systems.worker.isolated import environment_of
from tracing.errors import BudgetExceededError, CallFailedError, ContractError
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

pytestmark = pytest.mark.slow

Open = Callable[..., ModelAccess]
Ready = Callable[[str], None]
BASELINE = baseline_candidate(PROMPTS)


def read(request: str) -> list[str]:
    """The lines of an extraction request's conversation without what Memori recalled."""
    said = request.partition("Conversation:\n")[2].partition("</memori_context>")
    return (said[2] or said[0]).strip().splitlines()


def every_line(body: Mapping[str, Any]) -> str:
    """Every line said is a fact; the answer is the first memory."""
    request = prompt_of(dict(body))
    if '"facts"' in json.dumps(body.get("response_format") or {}):
        return json.dumps({"facts": read(request)})
    return next((line[2:] for line in request.splitlines() if line.startswith("- ")), "unknown")


@pytest.fixture(autouse=True)
def _installed(environments: Ready) -> None:
    environments("memori")


@pytest.mark.thorough
class TestMemori(MemorySystemConformance):
    @pytest.fixture(autouse=True)
    def _models(self, scripted_server: ScriptedServer, open_access: Open) -> None:
        scripted_server.script = every_line
        self.opened = open_access(cache=False)

    def access(self) -> ModelAccess:
        return self.opened

    def system(self) -> MemorySystem:
        return open_system("memori")


def build(
    access: ModelAccess, conversation: Conversation = SMALL_TALK, **settings: Any
) -> tuple[Memory, ExecutionGraph]:
    with trace(prefix="b") as recorder:
        memory = open_system("memori", settings).build(conversation, BASELINE, access)
    return memory, recorder.graph


def test_a_re_run_makes_no_new_call(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = every_line
    memory, _ = build(open_access(), window=1)
    open_system("memori").answer(memory, SMALL_TALK.questions[0], BASELINE, open_access())
    made = (scripted_server.count, len(scripted_server.embedding_requests))
    again, _ = build(open_access(), window=1)
    open_system("memori").answer(again, SMALL_TALK.questions[0], BASELINE, open_access())
    assert (scripted_server.count, len(scripted_server.embedding_requests)) == made
    assert again.state == memory.state


@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_every_turn_is_read_once_whatever_the_window(
    scripted_server: ScriptedServer, open_access: Open, window: int
) -> None:
    scripted_server.script = every_line
    build(open_access(), window=window)
    requests = [prompt_of(body) for body in scripted_server.requests]
    assert [line for request in requests for line in read(request)] == [turn.spoken for turn in SMALL_TALK.turns()]


def test_what_memori_recalls_is_read_by_the_next_extraction_and_dated_by_its_session(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = every_line
    early, late = SMALL_TALK.sessions
    early = early.model_copy(update={"time": "10 am on 4 March, 2024"})
    _, graph = build(open_access(), SMALL_TALK.model_copy(update={"sessions": (early, late)}))
    first, second = graph.find_operations(name="extract_facts")
    (context,) = [graph.variables[vid] for vid in second.input_ids() if graph.variables[vid].kind == "context"]
    assert all(graph.variables[vid].kind != "context" for vid in first.input_ids())
    assert "<memori_context>" in str(context.value)
    assert "painted green.. Stated at 2024-03-04 10:00" in str(context.value)
    assert str(context.value) in prompt_of(scripted_server.requests[1])
    assert {op.name for op in graph.producers(context.id)} == {"recall"}


MEALS = Conversation.model_validate(
    {
        "id": "meals",
        "speakers": ["Mara", "Ilya"],
        "sessions": [
            {"id": "D1", "time": "2024-03-04 10:00", "turns": [
                {"id": "D1:1", "speaker": "Ilya", "text": "My gecko eats nothing but mashed papaya."},
            ]},
            {"id": "D2", "time": "2024-03-05 10:00", "turns": [
                {"id": "D2:1", "speaker": "Mara", "text": "My tortoise Brisket eats nothing but radicchio."},
            ]},
        ],
        "questions": [
            {"id": "food", "question": "What does Mara's tortoise eat?", "answers": ["radicchio"],
             "evidence": ["D2:1"]},
        ],
    }
)  # fmt: skip


def confused(body: Mapping[str, Any]) -> str:
    """Gives the food that a memori_context tells of to whoever speaks next, as a small model does."""
    request = prompt_of(dict(body))
    if '"facts"' not in json.dumps(body.get("response_format") or {}):
        return "papaya" if "tortoise Brisket eats nothing but mashed papaya" in request else "radicchio"
    if "gecko" in "".join(read(request)):
        return json.dumps({"facts": ["Ilya's gecko eats nothing but mashed papaya."]})
    food = "mashed papaya" if "mashed papaya" in request else "radicchio"
    return json.dumps({"facts": [f"Mara's tortoise Brisket eats nothing but {food}."]})


def test_an_extraction_that_the_injected_context_contaminates_is_named_as_the_fault(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = confused
    system, access, asked = open_system("memori"), open_access(), MEALS.questions[0]
    with trace(prefix="b") as building:
        memory = system.build(MEALS, BASELINE, access)
    with trace(prefix="a") as answering:
        answering.adopt(building.records())
        with session(asked.id):
            answer = system.answer(memory, asked, BASELINE, access)
    graph = building.graph.merge(answering.graph)
    case = Case(MEALS.id, asked, answer.text, judge(answer.text, asked.answers), answer.variable)
    assert answer.text == "papaya"
    (blame,) = attribute(case, graph, MEALS, system.operations).decisive
    assert (blame.operation, blame.error_type) == ("extract_facts", "ExtractionError")
    # What contaminated it is an input of the operation blamed, and came from what was said to somebody else.
    assert blame.operation_id is not None
    read_by = [graph.variables[vid] for vid in graph.operations[blame.operation_id].input_ids()]
    (context,) = [one for one in read_by if one.kind == "context"]
    assert "mashed papaya" in str(context.value)
    assert not any("papaya" in str(one.value) for one in read_by if one.kind == "message")
    sources = graph.backward_slice(context.id).variables
    assert any(one.name == "D1:1" for one in sources.values())
    # The same model reads the same turn rightly where nothing was recalled.
    alone = MEALS.model_copy(update={"sessions": MEALS.sessions[1:]})
    (entry,) = build(access, alone)[0].state["entries"]
    assert "radicchio" in entry["text"]


def test_an_entity_recalls_nothing_of_another_and_every_process_the_same(tmp_path: Path) -> None:
    environment = environment_of(SYSTEMS.open("memori"))
    assert environment is not None
    script = Path(__file__).with_name("two_entities.py")
    command = [environment.interpreter, "-I", script, tmp_path / "shared.sqlite"]
    said = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()[-1])
    assert said == {
        "ann": ["Ann likes quinces."],
        "bob": ["Bob likes quinces."],
        "bob in another process": ["Bob likes quinces."],
        "carol": [],
        "weight of words": 0.35,
    }


def test_a_memory_holds_nothing_of_the_conversation_built_before(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = every_line
    access = open_access()
    alone = build(access, MEALS)[0]
    build(access, SMALL_TALK)
    assert build(access, MEALS)[0].state == alone.state
    assert "cottage" not in json.dumps(alone.state)


def test_a_fact_that_memori_takes_for_a_stored_one_is_seen_to_be_lost(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = lambda body: json.dumps({"facts": ["Петя любит чай.", "Маша любит кофе."]})
    memory, graph = build(open_access(), MEALS)
    assert [entry["text"] for entry in memory.state["entries"]] == ["Петя любит чай."]
    stored = [graph.variables[op.output_ids()[0]] for op in graph.find_operations(name="store")]
    assert [one.version for one in stored] == [1, 2, 3, 4]
    assert {one.value for one in stored} == {"Петя любит чай."}


def test_a_failure_that_memori_swallows_leaves_the_build(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = lambda body: Reply("down", status=500)
    with pytest.raises(CallFailedError):
        build(open_access(retries=0))


def test_a_spent_budget_leaves_the_build_as_such(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = every_line
    with pytest.raises(BudgetExceededError):
        build(open_access(Limits(calls=3), cache=False))


def test_a_malformed_reply_stores_nothing_and_is_noted(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = lambda body: "no JSON"
    memory, graph = build(open_access())
    assert memory.state["entries"] == []
    assert all("malformed" in op.attributes for op in graph.find_operations(name="extract_facts"))


def test_memori_sends_the_exported_text_and_stores_what_its_reply_says(tmp_path: Path) -> None:
    candidate = {**BASELINE, "extract": BASELINE["extract"] + ' Mind {{"braces"}}, $5, 100 % and kestrel.'}
    MemoriAugmentation().write(candidate, tmp_path)
    (proof,) = MemoriAugmentation().prove(tmp_path)
    assert f"all {len(candidate['extract'])} characters are in the user message of memori 3.3.6's" in proof
    (tmp_path / "memori.json").write_text(json.dumps({**candidate, "extract": "{conversation}"}))
    prompts = (tmp_path / "memori_augmentation.py").read_text().replace('["extract"]', '["answer"]')
    (tmp_path / "memori_augmentation.py").write_text(prompts)
    with pytest.raises(ContractError, match="does not send it"):
        MemoriAugmentation().prove(tmp_path)


class Told(Intervention):
    """Every extraction also says that a kestrel nests in the cottage, as a repair of it would."""

    def extracted(self, step: Step, messages: Sequence[Variable], statements: list[str]) -> list[str]:
        return [*statements, "A kestrel nests in the cottage."] if step.operation == "extract_facts" else statements


def test_a_repaired_extraction_is_what_memori_stores_and_finds(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = every_line
    access = open_access()
    with intervene(Told()):
        memory, _ = build(access)
    assert "A kestrel nests" in json.dumps(memory.state["entries"])
    asked = SMALL_TALK.questions[0].model_copy(update={"question": "Where does the kestrel nest?"})
    with trace() as recorder:
        open_system("memori").answer(memory, asked, BASELINE, access)
    assert any("kestrel" in str(one.value) for one in recorder.graph.find_variables(kind="context"))


def test_a_user_s_own_limits_of_recall_count_while_it_reads_and_answers(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = every_line
    own = {"recall_facts_limit": 1, "recall_relevance_threshold": -1.0}
    memory, graph = build(open_access(), window=1, config=own)
    assert len(memory.state["entries"]) > 2
    recalled = [str(one.value).count("Stated at") for one in graph.find_variables(kind="context")]
    assert set(recalled) == {1}
    with trace() as recorder:
        open_system("memori", {"config": own}).answer(memory, SMALL_TALK.questions[0], BASELINE, open_access())
    (context,) = recorder.graph.find_variables(kind="context")
    assert len(str(context.value).splitlines()) == 1
    strict, none = build(open_access(), window=1, config={"recall_relevance_threshold": 2.0})
    assert not list(none.find_variables(kind="context"))
    assert len(strict.state["entries"]) == len(memory.state["entries"])
