"""What was said or stored after a question was answered does not exist for its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from scripted_memory import FACT_MEMORY, ScriptedMemory
from scripted_server import ScriptedServer, prompt_of

from attribution.cases import Case
from attribution.failures import NOT_KNOWN
from attribution.judging.words import Judgement, judge
from attribution.recordings import recording_of
from attribution.replay.replay_method import Replay
from attribution.survival.survival_method import Survival
from experiments.annotating.case_graph import CaseGraphs
from experiments.systems.rag import Rag
from experiments.views.trace_page import questions_of
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, trace, variable
from tracing.systems.conversations import Conversation, Question
from tracing.systems.prompts import baseline_candidate

ASKED = {"id": "pet", "question": "What is Ana's dog called?", "answers": ["Rex"]}


def talk(*later: str) -> Conversation:
    said = ("I adopted a dog called Rex.", "I like tea.", *later)
    turns = [{"id": f"D1:{at}", "speaker": "Ana", "text": text} for at, text in enumerate(said, start=1)]
    return Conversation.model_validate(
        {"id": "ana", "speakers": ["Ana"], "sessions": [{"id": "D1", "time": "2024-05-01", "turns": turns}]}
    )


def question(**known: Any) -> Question:
    return Question.model_validate({**ASKED, **known})


@pytest.mark.parametrize("known", [{}, {"evidence": ["D1:1"]}, {"evidence": ["D1:1", "D1:3"]}])
def test_an_entry_that_was_stored_after_the_answer_is_not_what_retrieval_missed(known: dict[str, Any]) -> None:
    with ScriptedMemory(talk("Rex is the name that Ana's dog is called.")) as memory:
        memory.remember(("D1:1", "D1:2"), "Ana likes tea.")
        case = memory.answer(question(**known), ["m1"], "I don't know")
        memory.remember(("D1:3",), "Ana adopted a dog called Rex.")
    blame = memory.blame(case)
    assert (blame.operation, blame.error_type) == ("extract_facts", "ExtractionError")
    cited = {memory.recorder.graph.variables[vid].name for vid in blame.evidence}
    assert cited == {"D1:1"}
    assert "D1:3" not in blame.reason
    assert memory.attribute(case).case == case


def test_an_entry_that_was_changed_after_the_answer_counts_as_it_was(pets: Conversation) -> None:
    asked = next(one for one in pets.questions if one.id == "food")
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:1", "D1:2"), "Mara's tortoise Brisket only comes out for radicchio.")
        case = memory.answer(asked, [], "unknown")
        (fact,) = memory.extract(("D1:3", "D1:4"), ["Mara's tortoise sleeps in a wine crate."])
        memory.store(fact, "UPDATE", "m1", near=["m1"])
    assert memory.blame(case).error_type == "RetrievalError"


@pytest.mark.parametrize("known", [{}, {"evidence": ["D1:3"]}])
def test_what_was_said_only_after_the_question_is_told_and_no_operation_is_blamed(known: dict[str, Any]) -> None:
    with ScriptedMemory(talk("Bella is the name of my new cat.")) as memory:
        memory.remember(("D1:1", "D1:2"), "Ana adopted a dog called Rex.")
        asked = Question(id="cat", question="What is Ana's cat called?", answers=("Bella",), **known)
        case = memory.answer(asked, ["m1"], "Rex")
        memory.remember(("D1:3",), "Ana has a cat called Bella.")
        late = memory.answer(asked.model_copy(update={"id": "again"}), ["m1"], "Rex")
    abstained = memory.attribute(case).abstained
    assert abstained == "'Bella' was said only in D1:3, after the question was answered"
    assert memory.blame(late).error_type == "RetrievalError"


def test_a_complaint_is_searched_in_what_had_been_said(pets: Conversation) -> None:
    with ScriptedMemory(talk("My dog is called Rex, my dog, what a dog.")) as memory:
        memory.remember(("D1:1", "D1:2"), "Ana likes tea.")
        case = memory.answer(question(answers=[NOT_KNOWN]), ["m1"], "I don't know")
        memory.remember(("D1:3",), "Ana's dog is called Rex.")
    recording = recording_of(memory.recorder.graph, "ana")
    method = Survival(recording.graph, recording.conversation, recording.operations)
    found = method.attribute(case)
    assert found.decisive
    assert all(text.name != "D1:3" for step in method.picture(found).steps for text in step.texts)


def test_pages_show_a_question_without_what_came_after_it() -> None:
    with ScriptedMemory(talk("Rex, as I said.")) as memory:
        memory.remember(("D1:1", "D1:2"), "Ana likes tea.")
        case = memory.answer(question(evidence=["D1:1", "D1:3"]), ["m1"], "I don't know")
        memory.remember(("D1:1",), "Ana adopted a dog called Rex.")
        memory.remember(("D1:3",), "Ana talks about Rex.")
    graph = memory.recorder.graph
    (shown,) = questions_of(graph, [(case, memory.attribute(case))])
    assert [graph.variables[vid].name for vid in shown["evidence"]] == ["D1:1"]
    look = CaseGraphs(recording_of(graph, "ana"), case)
    texts = {
        str(graph.variables[vid].value) for column in look.around().columns for vid in column if vid in graph.variables
    }
    assert "Ana likes tea." in texts
    assert not {text for text in texts if "Rex" in text and "I adopted" not in text}
    assert [graph.variables[one.id].name for one in look.evidence() if one.gold] == ["D1:1"]


def test_a_replay_builds_the_memory_of_what_had_been_said(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    system = Rag(chunk_tokens=1, retrieval="sparse", top_k=5)
    seed, access, early = baseline_candidate(system.prompts), open_access(), talk()
    given: list[str] = []

    def script(body: dict[str, Any]) -> str:
        given.append(prompt_of(body))
        return "Rex" if "loud" in given[-1] else "I don't know"

    scripted_server.script = script
    with trace() as recorder:
        memory, asked = system.build(early, seed, access), question(evidence=["D1:1"])
        with session(asked.id):
            answer = system.answer(memory, asked, seed, access)
        with operation(
            "chunk", inputs={"messages": [variable("Ana: Rex is loud.", name="D1:3", kind="message")]}
        ) as op:
            op.output("chunks", "Ana: Rex is loud.", name="m9", kind="memory_entry")

    def judged(one: Question, reply: str) -> Judgement:
        return judge(reply, one.answers)

    case = Case("ana", asked, answer.text, judged(asked, answer.text), answer.variable)
    replay = Replay(system, seed, access, talk("Rex is loud."), judged, graph=recorder.graph)
    assert replay.examine(case).attribution.decisive
    assert not [prompt for prompt in given if "loud" in prompt]


def test_where_nothing_came_later_the_verdict_is_that_of_the_whole_trace(pets: Conversation) -> None:
    asked = next(one for one in pets.questions if one.id == "food")
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:1", "D1:2"), "Ilya's gecko only eats mashed papaya.")
        first: Case = memory.answer(asked, ["m1"], "papaya")
        second = memory.answer(asked.model_copy(update={"id": "food2"}), ["m1"], "papaya")
    method = Survival(memory.recorder.graph, pets, FACT_MEMORY)
    one, other = method.attribute(first), method.attribute(second)
    assert replace(one.decisive[0], evidence=()) == replace(other.decisive[0], evidence=())
