"""Replay blames the earliest operation whose repair rescues the answer, and runs again only what comes after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from evermemos_model import EverMemOSModel
from fallible_model import Mistake, answers, decides, forgets, let_answer
from scripted_server import Reply, ScriptedServer

from attribution.cases import Attribution, Blame, Case
from attribution.judging.words import Judgement, judge
from attribution.replay.replay_method import CONFIRMED, JOINT, Checked, Replay
from experiments.systems.evermemos.system import EverMemOS
from experiments.systems.fact_memory import FactMemory
from experiments.systems.mem0.system import Mem0
from experiments.systems.rag import Rag
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session, trace
from tracing.systems.conversations import Conversation, Question
from tracing.systems.prompts import baseline_candidate
from tracing.systems.protocol import MemorySystem

MEMORY = FactMemory(near=0.3)


@dataclass(frozen=True)
class Saying:
    """A method that says one thing."""

    said: Attribution

    def attribute(self, case: Case) -> Attribution:
        return self.said


def judged(question: Question, reply: str) -> Judgement:
    return judge(reply, question.answers)


def replayed(
    system: MemorySystem, conversation: Conversation, question: str, access: ModelAccess
) -> tuple[Replay, Case]:
    """The case of a question as the system answers it, and what replays it against the recorded graph."""
    candidate = baseline_candidate(system.prompts)
    with trace(prefix="b") as building:
        memory = system.build(conversation, candidate, access)
    with trace(prefix="a") as answering:
        answering.adopt(building.records())
        for asked in conversation.questions:
            with session(asked.id):
                answer = system.answer(memory, asked, candidate, access)
            if asked.id == question:
                case = Case(conversation.id, asked, answer.text, judged(asked, answer.text), answer.variable)
    return Replay(system, candidate, access, conversation, judged, graph=answering.graph), case


@pytest.mark.parametrize(
    ("question", "mistake", "operation", "error_type"),
    [
        ("food", forgets("radicchio"), "extract_facts", "ExtractionError"),
        ("bed", decides("NONE", "suitcase"), "decide_update", "UpdateError"),
        ("food", decides("UPDATE", "sleeps in a wine crate"), "decide_update", "UpdateError"),
        ("food", decides("DELETE", "sleeps in a wine crate"), "decide_update", "DeletionError"),
        ("pup", decides("NONE", "forgotten"), "decide_update", "DeletionError"),
        ("pup", forgets("forgotten"), "extract_facts", "ExtractionError"),
        ("food", answers("papaya", "What food"), "answer", "ResponseError"),
        ("pup", answers("Crouton", "whippet"), "answer", "ResponseError"),
    ],
)
def test_the_operation_at_fault_is_confirmed(
    pets: Conversation,
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    question: str,
    mistake: Mistake,
    operation: str,
    error_type: str,
) -> None:
    let_answer(scripted_server, pets, mistakes=[mistake])
    replay, case = replayed(MEMORY, pets, question, open_access())
    assert not case.passed
    found = replay.examine(case)
    (blame,) = found.attribution.decisive
    assert (blame.operation, blame.error_type, blame.confidence) == (operation, error_type, CONFIRMED)
    assert found.checks[-1].verdict == "confirmed"


def test_the_blame_names_the_execution_of_the_case_s_own_graph(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    let_answer(scripted_server, pets, mistakes=[forgets("radicchio")])
    replay, case = replayed(MEMORY, pets, "food", open_access())
    (extraction,) = replay.attribute(case).decisive
    graph = replay._graph
    assert graph is not None
    read = graph.operations[str(extraction.operation_id)]
    assert "D1:1" in {graph.variables[vid].name for vid in read.input_ids()}
    let_answer(scripted_server, pets, mistakes=[answers("papaya", "What food")])
    replay, case = replayed(MEMORY, pets, "food", open_access(cache=False))
    (answer,) = replay.attribute(case).decisive
    graph = replay._graph
    assert graph is not None
    assert case.prediction in graph.operations[str(answer.operation_id)].output_ids()


def test_where_one_repair_is_not_enough_the_smallest_set_that_is_gets_the_blame(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    mistakes = forgets("radicchio"), answers("papaya", "What food"), decides("NONE", "suitcase")
    let_answer(scripted_server, pets, mistakes=mistakes)
    replay, case = replayed(MEMORY, pets, "food", open_access())
    found = replay.examine(case)
    blamed = [(blame.operation, blame.confidence) for blame in found.attribution.decisive]
    assert blamed == [("extract_facts", JOINT), ("answer", JOINT)]
    assert [check.verdict for check in found.checks] == ["refuted"]


def test_only_what_is_downstream_is_asked_again(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    let_answer(scripted_server, pets, mistakes=[answers("papaya", "What food")])
    replay, case = replayed(MEMORY, pets, "food", open_access())
    before = scripted_server.count
    assert replay.examine(case).calls == 0
    assert scripted_server.count == before
    let_answer(scripted_server, pets, mistakes=[forgets("radicchio")])
    replay, case = replayed(MEMORY, pets, "food", open_access(cache=True, model="another"))
    before, built = scripted_server.count, scripted_server.requests
    found = replay.examine(case)
    fresh = built[before:]
    assert 0 < len(fresh) <= found.calls
    assert not any("Conversation:" in str(request["messages"]) for request in fresh)


def test_an_operation_is_not_blamed_for_what_it_was_not_given(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    let_answer(scripted_server, pets, mistakes=[forgets("radicchio")])
    replay, case = replayed(MEMORY, pets, "food", open_access())
    blames = {
        "extract_facts": "confirmed",
        "retrieve": "not repairable",
        "answer": "not repairable",
        "decide_update": "not repairable",
    }
    for operation, verdict in blames.items():
        assert replay.verdicts(case, [Blame(operation, None, "ResponseError", 0.9, "a guess")]) == [verdict]


def test_every_blame_of_another_method_gets_its_own_verdict(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    mistakes = forgets("radicchio"), answers("papaya", "What food"), decides("NONE", "suitcase")
    let_answer(scripted_server, pets, mistakes=mistakes)
    replay, case = replayed(MEMORY, pets, "food", open_access())
    operations = "extract_facts", "decide_update", "retrieve", "answer"
    guesses = tuple(Blame(operation, None, "ResponseError", 0.9, "a guess") for operation in operations)
    found = Checked(Saying(Attribution(case, guesses)), replay).explain(case)
    checked = found.attribution
    assert [(one.title, one.text.partition(":")[0]) for one in found.steps] == [
        ("Replay of extract_facts", "confirmed"),
        ("Replay of decide_update", "not repairable"),
        ("Replay of retrieve", "not repairable"),
        # Only what the repaired extraction brings gives it something to correct.
        ("Replay of answer", "confirmed"),
    ]
    assert "alone or with the others" in found.steps[0].text
    assert replay.verdicts(case, guesses[:1]) == ["refuted"], "alone it does not help"
    assert replay.verdicts(case, guesses[:2]) == ["refuted", "not repairable"]
    scripted_server.script = lambda body: Reply("out of order", status=500)
    candidate = baseline_candidate(MEMORY.prompts)
    failing = Replay(MEMORY, candidate, open_access(cache=False, retries=0), pets, judged)
    unsaid = replace(checked, decisive=tuple(replace(blame, verdict=None) for blame in checked.decisive))
    assert Checked(Saying(unsaid), failing).attribute(case) == unsaid, "the blames stay where the check fails"


def test_an_annotation_that_nothing_supports_is_abstained_from(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    let_answer(scripted_server, pets)
    replay, case = replayed(MEMORY, pets, "city", open_access())
    assert replay.attribute(case).abstained == (
        "no operation's output is wrong given its inputs, as far as the gold evidence tells"
    )


def test_rag_is_replayed(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    let_answer(scripted_server, pets, mistakes=[answers("papaya", "What food")])
    replay, case = replayed(Rag(top_k=2), pets, "food", open_access())
    assert [blame.operation for blame in replay.attribute(case).decisive] == ["answer"]
    # All texts are alike to this embedding, so that the first chunk is found whatever is asked.
    scripted_server.embed = lambda text: [1.0, *[0.0] * 255]
    replay, case = replayed(Rag(chunk_tokens=20, top_k=1), pets, "bed", open_access(model="another"))
    assert not case.passed
    assert [blame.operation for blame in replay.attribute(case).decisive] == ["retrieve"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "mistake", "operation"),
    [
        ("food", forgets("radicchio"), "extract_facts"),
        ("bed", lambda request, reply: reply.replace('"UPDATE"', '"NONE"'), "decide_update"),
        ("food", answers("papaya", "What food"), "answer"),
    ],
)
def test_mem0_is_replayed(
    pets: Conversation,
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    question: str,
    mistake: Mistake,
    operation: str,
) -> None:
    let_answer(scripted_server, pets, mistakes=[mistake])
    replay, case = replayed(Mem0(reply_schema="never"), pets, question, open_access())
    assert not case.passed
    assert [blame.operation for blame in replay.attribute(case).decisive] == [operation]


def told(pets: Conversation, **rules: Any) -> EverMemOSModel:
    """A model that tells the annotated facts, and overlooks what the first line of an episode says."""
    known = {fact.turn: fact.text for fact in pets.facts}
    said = {turn.id: turn.text for turn in pets.turns()}

    def tell(lines: Sequence[str]) -> list[str]:
        return [fact for turn, fact in known.items() if any(said[turn] in line for line in lines)]

    def answer(lines: Sequence[str]) -> str:
        if any("radicchio" in line for line in lines if not line.startswith("A talk")):
            return "radicchio"
        return "old suitcase" if any("suitcase" in line for line in lines) else "wine crate"

    return EverMemOSModel(**{"ends": lambda lines: [], "tells": tell, "answers": answer, **rules})


def without_radicchio(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if "radicchio" not in line]


def test_an_extraction_that_reads_what_another_made_of_the_messages_is_replayed(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = told(pets, lists=without_radicchio)
    replay, case = replayed(EverMemOS(), pets, "food", open_access())
    assert not case.passed
    (blame,) = replay.attribute(case).decisive
    graph = replay._graph
    assert graph is not None
    assert blame.operation == "extract_facts"
    assert graph.operations[str(blame.operation_id)].session == graph.find_operations(name="write_episode")[0].session
    assert replay.verdicts(case, [blame]) == ["confirmed"]


@pytest.mark.parametrize(
    ("question", "rules", "settings", "operation"),
    [
        ("food", {"tells": lambda lines: ["Mara owns a tortoise."]}, {}, "write_episode"),
        ("bed", {"enough": lambda documents: True}, {"top_k": 1}, "check_sufficiency"),
        ("bed", {"more": ["Agata"]}, {"top_k": 1}, "retrieve_again"),
        ("food", {"answers": lambda lines: "papaya"}, {}, "answer"),
    ],
)
def test_evermemos_is_replayed(
    pets: Conversation,
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    question: str,
    rules: dict[str, Any],
    settings: dict[str, int],
    operation: str,
) -> None:
    if settings:
        # All texts are alike to this embedding, so that the first session comes first whatever is asked.
        scripted_server.embed = lambda text: [1.0, 0.0]
    scripted_server.script = told(pets, **rules)
    replay, case = replayed(EverMemOS(**settings), pets, question, open_access())
    assert not case.passed
    assert [blame.operation for blame in replay.attribute(case).decisive] == [operation]
