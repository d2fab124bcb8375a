"""The agent explores within its bounds, and what it concludes names only what the graph has."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from scripted_memory import FACT_MEMORY, ScriptedMemory
from scripted_server import Reply, ScriptedServer, prompt_of

from attribution.agent.agent_method import CONCLUSIONS, MOST_GARBAGE, Agent
from attribution.agent.agent_prompts import Note, remembered, tokens_at_most
from attribution.cases import Attribution, Blame, Case
from attribution.methods import Triage
from tracing.errors import BudgetExceededError, OutOfTimeError
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.llm.reply_json import object_in
from tracing.llm.settings import Limits
from tracing.systems.conversations import Conversation

Opener = Callable[..., ModelAccess]


@pytest.fixture
def lost(pets: Conversation) -> tuple[ExecutionGraph, Case, str]:
    """A memory whose extraction lost the tortoise's food: its graph, the wrong answer, and the guilty operation."""
    with ScriptedMemory(pets) as memory:
        memory.remember(["D1:1", "D1:2"], "Mara has a tortoise, Brisket.", "Ilya's gecko eats mashed papaya.")
        case = memory.answer(pets.questions[0], ["m2"], "papaya")
    graph = memory.recorder.graph
    return graph, case, graph.find_operations(name="extract_facts")[0].id


@dataclass(frozen=True)
class Said:
    """A method that says one thing."""

    said: Attribution

    def attribute(self, case: Case) -> Attribution:
        return self.said


def step(tool: str, target: str = "", text: str = "") -> str:
    return json.dumps({"thought": "let me see", "tool": tool, "target": target, "text": text})


def verdict(operation: str, error_type: str = "ExtractionError", evidence: tuple[str, ...] = ()) -> str:
    said = {"reason": "it left the food out", "error_type": error_type, "operation": operation}
    return json.dumps({**said, "confidence": "high", "evidence": list(evidence)})


def concluding(body: dict[str, Any]) -> bool:
    return "Conclude now" in prompt_of(body)


def test_it_follows_the_graph_by_its_tools_and_blames_an_execution_that_is_there(
    scripted_server: ScriptedServer, open_access: Opener, lost: tuple[ExecutionGraph, Case, str]
) -> None:
    graph, case, guilty = lost

    def script(body: dict[str, Any]) -> str:
        said = prompt_of(body)
        if concluding(body):
            (extraction,) = set(re.findall(r"(\S+) extract_facts in D1:", said))
            (fact,) = set(re.findall(r"(\S+) fact \S+: Mara has a tortoise", said))
            return verdict(extraction, evidence=(fact, "v999"))
        if "consumers(" not in said:
            return step("consumers", re.findall(r"Evidence: (\S+) message D1:1", said)[0])
        if "operation(" not in said:
            return step("operation", re.findall(r"(\S+) extract_facts in D1: read", said)[0])
        return step("conclude")

    scripted_server.script = script
    found = Agent(graph, open_access(retries=0).task, operations=FACT_MEMORY).explain(case)
    (blame,) = found.attribution.decisive
    assert [one.title.partition("(")[0] for one in found.steps] == ["consumers", "operation"]
    assert (blame.operation, blame.operation_id, blame.error_type) == ("extract_facts", guilty, "ExtractionError")
    assert [graph.variables[vid].value for vid in blame.evidence] == ["Mara has a tortoise, Brisket."]
    assert scripted_server.count == 4


def test_an_operation_that_does_not_exist_is_told_and_then_abstained_from(
    scripted_server: ScriptedServer, open_access: Opener, lost: tuple[ExecutionGraph, Case, str]
) -> None:
    graph, case, guilty = lost
    scripted_server.script = lambda body: verdict("o999") if concluding(body) else step("conclude")
    attribution = Agent(graph, open_access(cache=False, retries=0).task).attribute(case)
    assert attribution.decisive == ()
    assert "no operation 'o999'" in (attribution.abstained or "")
    assert scripted_server.count == 1 + CONCLUSIONS
    assert "is refused: there is no operation 'o999'" in prompt_of(scripted_server.requests[-1])

    scripted_server.script = lambda body: (
        step("conclude") if not concluding(body) else verdict(guilty if "is refused" in prompt_of(body) else "o999")
    )
    assert Agent(graph, open_access(cache=False, retries=0).task).attribute(case).decisive[0].operation_id == guilty


def test_one_that_goes_round_in_circles_or_never_ends_is_brought_to_a_conclusion(
    scripted_server: ScriptedServer, open_access: Opener, lost: tuple[ExecutionGraph, Case, str]
) -> None:
    graph, case, guilty = lost
    scripted_server.script = lambda body: verdict(guilty) if concluding(body) else step("operations")
    assert Agent(graph, open_access(cache=False, retries=0).task).attribute(case).decisive
    assert scripted_server.count == 4, "the same question three times, and the conclusion"

    scripted_server.requests.clear()

    def wander(body: dict[str, Any]) -> str:
        return verdict(guilty) if concluding(body) else step("search", text=f"word{scripted_server.count}")

    scripted_server.script = wander
    assert Agent(graph, open_access(cache=False, retries=0).task, steps=7).attribute(case).decisive
    assert scripted_server.count == 8


@pytest.mark.parametrize("garbage", ["", "I think it is the retrieval.", '{"tool": "rm"}', "[]", '{"tool":', "null"])
def test_garbage_ends_in_an_abstention_that_says_so(
    scripted_server: ScriptedServer, open_access: Opener, lost: tuple[ExecutionGraph, Case, str], garbage: str
) -> None:
    graph, case, _ = lost
    scripted_server.script = lambda body: garbage
    attribution = Agent(graph, open_access(cache=False, retries=0).task).attribute(case)
    assert attribution.decisive == ()
    assert "no usable conclusion" in (attribution.abstained or "")
    assert scripted_server.count == MOST_GARBAGE + CONCLUSIONS


def test_a_model_that_fails_costs_one_case_and_a_spent_budget_ends_the_work(
    scripted_server: ScriptedServer, open_access: Opener, lost: tuple[ExecutionGraph, Case, str]
) -> None:
    graph, case, _ = lost
    scripted_server.script = lambda body: Reply("out of order", status=500)
    attribution = Agent(graph, open_access(cache=False, retries=0).task).attribute(case)
    assert "out of order" in (attribution.abstained or "")
    scripted_server.script = lambda body: step("operations")
    with pytest.raises(BudgetExceededError):
        Agent(graph, open_access(Limits(calls=1), cache=False, retries=0).task).attribute(case)


def test_time_for_a_case_is_limited(
    scripted_server: ScriptedServer, open_access: Opener, lost: tuple[ExecutionGraph, Case, str]
) -> None:
    graph, case, _ = lost
    scripted_server.script = lambda body: step("search", text=f"word{scripted_server.count}")
    now = iter(range(0, 1000, 10))
    agent = Agent(graph, open_access(cache=False, retries=0).task, seconds=25, clock=lambda: float(next(now)))
    with pytest.raises(OutOfTimeError, match="not done after 25 seconds"):
        agent.attribute(case)
    assert scripted_server.count == 2
    sure = Said(Attribution(case, (Blame("answer", None, "ResponseError", 0.4, "a guess"),)))
    assert Triage(sure, agent).attribute(case) == sure.said, "what the cheap method said stands"
    assert Triage(sure, agent, unsure=0.3).explain(case).steps == (), "the first shows none"
    with pytest.raises(OutOfTimeError):
        Triage(Said(Attribution(case, abstained="no idea")), agent).attribute(case)


def test_a_free_question_is_answered_with_ids_that_exist(
    scripted_server: ScriptedServer, open_access: Opener, lost: tuple[ExecutionGraph, Case, str]
) -> None:
    graph, _, guilty = lost

    def script(body: dict[str, Any]) -> str:
        if not concluding(body):
            return step("conclude") if "search(" in prompt_of(body) else step("search", text="papaya")
        cited = [guilty] if "is refused" in prompt_of(body) else ["nowhere"]
        return json.dumps({"answer": "The food was never extracted.", "evidence": cited})

    scripted_server.script = script
    found = Agent(graph, open_access(retries=0).task).ask("Why papaya?")
    assert (found.answer, found.evidence, found.abstained) == ("The food was never extracted.", (guilty,), None)
    assert (found.steps, found.tokens > 0) == (1, True)
    scripted_server.script = lambda body: (
        json.dumps({"answer": "So it is.", "evidence": []}) if concluding(body) else step("conclude")
    )
    found = Agent(graph, open_access(cache=False, retries=0).task).ask("Why?")
    assert found.answer is None
    assert "evidence is empty" in (found.abstained or "")


def test_ids_too_long_to_repeat_have_handles_that_come_back_as_ids(
    scripted_server: ScriptedServer, open_access: Opener
) -> None:
    vid, oid = "message:the_first_message_of_all@1", "0a4c2f6e-5b1d-4a53-9c77-000000000001"
    graph = ExecutionGraph(
        [Variable(vid, "m", "message", "Mara: hello")], [Operation(oid, "extract_facts", inputs=(("m", vid),))]
    )
    scripted_server.script = lambda body: (
        json.dumps({"answer": "o1 read v1.", "evidence": ["v1", "o1"]}) if concluding(body) else step("conclude")
    )
    found = Agent(graph, open_access(retries=0).task).ask("What happened?")
    assert (found.answer, found.evidence) == (f"{oid} read {vid}.", (vid, oid))
    assert vid not in prompt_of(scripted_server.requests[-1])


def test_no_request_outgrows_the_context_however_large_the_graph(
    scripted_server: ScriptedServer, open_access: Opener
) -> None:
    huge = "记忆系统" * 5000
    graph = ExecutionGraph(
        [Variable(f"v{n}", huge[:200], "message", huge) for n in range(300)],
        [Operation("o1", "extract_facts", inputs=tuple(("m", f"v{n}") for n in range(300)))],
    )
    tools = iter([("view", "v1", ""), ("operation", "o1", ""), ("search", "", "记忆"), ("backward", "v1", "")] * 5)

    def script(body: dict[str, Any]) -> str:
        if concluding(body):
            return json.dumps({"answer": "Nothing.", "evidence": ["o1"]})
        tool, target, text = next(tools)
        return step(tool, target, text or str(scripted_server.count))

    scripted_server.script = script
    context = 4096
    Agent(graph, open_access(retries=0).task, context=context, steps=20).ask("为什么？" * 2000)
    assert scripted_server.count > 10
    assert max(tokens_at_most(prompt_of(body)) + body["max_tokens"] for body in scripted_server.requests) <= context


def test_what_is_remembered_fits_its_room_and_always_shows_the_latest() -> None:
    notes = [Note(f"search({n})", f"reply {n} " * 60) for n in range(30)]
    for room in (60, 100, 400, 1500, 100_000):
        text = remembered(notes, room)
        assert tokens_at_most(text) <= room
        assert "search(29)" in text
    assert remembered(notes, 100_000).count("reply 0 ") == 60


@pytest.mark.parametrize(
    ("slips", "confidence"),
    [
        ({"error_type": "extraction_error", "confidence": "High"}, 0.7),
        ({"error_type": "Extraction Error", "confidence": 0.5, "reason": "because " * 200}, 0.5),
        ({"error_type": "ExtractionError", "confidence": 92, "reason": None, "evidence": "D1:1"}, 0.7),
        ({"error_type": "ExtractionError", "confidence": None, "evidence": ["D1:1"] * 40, "more": {}}, 0.3),
    ],
    ids=["spelling", "length", "one id", "nulls"],
)
def test_slips_of_writing_that_leave_the_meaning_clear_are_forgiven(
    scripted_server: ScriptedServer,
    open_access: Opener,
    lost: tuple[ExecutionGraph, Case, str],
    slips: dict[str, Any],
    confidence: float,
) -> None:
    graph, case, guilty = lost
    thinking = '<think>Perhaps {it} is {"error_type": "none"}? No.</think>\n```json\n'

    def script(body: dict[str, Any]) -> str:
        if concluding(body):
            return thinking + json.dumps({"operation": guilty, **slips}) + "\n```"
        said = {"tool": "view", "target": None, "text": 7} if "view(" not in prompt_of(body) else {"tool": "conclude"}
        return json.dumps(said)

    scripted_server.script = script
    (blame,) = Agent(graph, open_access(cache=False, retries=0).task).attribute(case).decisive
    assert (blame.operation_id, blame.error_type, blame.confidence) == (guilty, "ExtractionError", confidence)
    assert scripted_server.count == 3


def test_a_name_that_many_executions_share_is_answered_with_their_ids(
    scripted_server: ScriptedServer, open_access: Opener, pets: Conversation
) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(["D1:1"], "Mara has a tortoise.")
        memory.remember(["D1:2"], "Ilya has a gecko.")
        case = memory.answer(pets.questions[0], ["m2"], "papaya")
    graph = memory.recorder.graph
    first = graph.find_operations(name="extract_facts")[0].id

    def script(body: dict[str, Any]) -> str:
        if not concluding(body):
            return step("conclude")
        told = re.findall(r"extract_facts ran 2 times \((\S+), ", prompt_of(body))
        return verdict(told[0] if told else "extract_facts")

    scripted_server.script = script
    (blame,) = Agent(graph, open_access(cache=False, retries=0).task).attribute(case).decisive
    assert blame.operation_id == first


def test_the_last_object_of_a_reply_counts_and_no_brace_misleads() -> None:
    assert object_in('{"a": {"b": 1}} and {"c": 2} }') == {"c": 2}
    assert object_in("{{{ {not json} [1, 2]") is None
    assert object_in("") is None
    assert object_in("{" * 50_000) is None
