"""Local objectives credit what a correct operation makes of its recorded inputs, and a rerun asks what was asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evermemos_model import EverMemOSModel
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, memory, world

from attribution.judging.llm_judge import LlmJudge
from experiments.systems.evermemos.system import EverMemOS
from experiments.systems.fact_memory import FactMemory
from experiments.systems.rag import Rag
from optimizer.evaluation.evaluator import Evaluator, Outcome
from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.objectives.objective import Credit, KnowsRightOutputs, RecordedInput
from optimizer.objectives.objectives import ObjectiveMeans, objectives_of
from optimizer.proposers.examples import examples_of
from optimizer.racing.whole_demonstrations import whole_demonstrations
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation
from tracing.systems.layouts import Item
from tracing.systems.protocol import MemorySystem, RerunsOperations

BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
Open = Callable[..., ModelAccess]
Local = tuple[LocalEvaluation, list[Outcome]]

DECIDED = Conversation.model_validate(
    {
        "id": "decided",
        "speakers": ["Anke", "Bodo"],
        "sessions": [
            {
                "id": "D1",
                "turns": [
                    {"id": "D1:1", "speaker": "Anke", "text": "My parrot is called Zibbel."},
                    {"id": "D1:2", "speaker": "Anke", "text": "My parrot is called Quark now."},
                ],
            }
        ],
        "facts": [
            {"id": "f1", "turn": "D1:1", "text": "Anke's parrot is called Zibbel."},
            {"id": "f2", "turn": "D1:2", "text": "Anke's parrot is now called Quark.", "action": "update", "of": "f1"},
        ],
        "questions": [
            {
                "id": "q1",
                "question": "What is the parrot of Anke called?",
                "answers": ["Quark"],
                "supersedes": True,
                "evidence": ["D1:2"],
                "fact": "f2",
                "near_miss": {"turn": "D1:1", "value": "Zibbel"},
            }
        ],
    }
)


@pytest.fixture
def recorded(open_access: Open, tmp_path: Path, scripted_server: ScriptedServer) -> Callable[..., Local]:
    """Evaluates conversations with the baseline prompts, and opens the local evaluation of what was recorded."""

    def record(system: Any = None, *conversations: Conversation, model: Any = None) -> Local:
        scripted_server.script = model or WeakModel()
        system = system or memory()
        assert isinstance(system, MemorySystem)
        assert isinstance(system, RerunsOperations)
        evaluator = Evaluator(
            system, open_access(cache=True, retries=0, concurrency=1), "short_contains", tmp_path / "memories"
        )
        baseline = {name: spec.text for name, spec in system.prompts.items()}
        outcomes = evaluator.evaluate(baseline, conversations or world().train)
        local = LocalEvaluation(system, system.prompts, objectives_of(evaluator, {}), evaluator.access)
        return local, outcomes

    return record


@pytest.mark.parametrize("system", [memory(), FactMemory(near=0.0), Rag()], ids=["facts", "decisions", "rag"])
def test_a_rerun_asks_what_was_asked_so_that_the_cache_answers(
    recorded: Callable[..., Local], scripted_server: ScriptedServer, system: Any
) -> None:
    local, outcomes = recorded(system)
    before = scripted_server.count
    for prompt, spec in system.prompts.items():
        inputs = local.inputs(prompt, outcomes)
        assert inputs or prompt == "decide"
        credits = local.measure(prompt, spec.text, inputs)
        values = [credit.value for credit in credits if credit is not None]
        assert len(values) == len(inputs)
        assert values == local.recorded_credits(prompt, inputs)
        weights = [local.objectives[prompt].weight(execution) for execution in inputs]
        lost = sum(weight * (1 - value) for weight, value in zip(weights, values, strict=True))
        assert local.lost(prompt, inputs, values) == pytest.approx(lost)
    assert scripted_server.count == before


class Forgetful(Rag):
    """Reruns the answer without what was retrieved."""

    def rerun(self, prompt: str, parts: Any, candidate: Any, access: ModelAccess) -> None:
        super().rerun(prompt, {**parts, "context": ()}, candidate, access)


class Rewording(Rag):
    """Reruns the answer with another request than was recorded."""

    def rerun(self, prompt: str, parts: Any, candidate: Any, access: ModelAccess) -> None:
        super().rerun(prompt, parts, {name: f"{text} Well?" for name, text in candidate.items()}, access)


@pytest.mark.parametrize(
    ("system", "told"),
    [(Rag(), None), (Forgetful(), "where the recorded one read"), (Rewording(), "of what gave")],
    ids=["as recorded", "without its context", "with another request"],
)
def test_a_rerun_is_compared_with_its_recording_and_what_differs_is_told(
    recorded: Callable[..., Local], caplog: pytest.LogCaptureFixture, system: Any, told: str | None
) -> None:
    def model(body: Any) -> str:
        return "Zibbel" if "Well?" not in prompt_of(body) else "Rollo"

    local, outcomes = recorded(system, model=model)
    (first, *_) = local.inputs("answer", outcomes)
    assert local.reruns_as_recorded("answer", Rag.prompts["answer"].text, first) is (told is None)
    warnings = [record.getMessage() for record in caplog.records]
    assert (warnings == []) if told is None else (told in warnings[0] and "memtune doctor --build" in warnings[0])


def test_the_answers_local_score_of_the_baseline_is_its_score(recorded: Callable[..., Local]) -> None:
    local, outcomes = recorded(None, model=WeakModel("answer"))
    inputs = local.inputs("answer", outcomes)
    credits = local.measure("answer", FactMemory.prompts["answer"].text, inputs)
    values = [credit.value for credit in credits if credit is not None]
    assert sum(values) / len(values) == pytest.approx(sum(each.score for each in outcomes) / len(outcomes))
    cured = f"{WeakModel('answer').cures[0]}\n{FactMemory.prompts['answer'].text}"
    assert [credit.value for credit in local.measure("answer", cured, inputs) if credit is not None] == [1.0] * len(
        inputs
    )


def extraction(recorded: Callable[..., Local]) -> tuple[LocalEvaluation, RecordedInput]:
    local, outcomes = recorded()
    return local, local.inputs("extract", outcomes)[0]


@pytest.mark.parametrize(
    ("statements", "value"),
    [
        (["{first}'s parrot is called {pet}."], 1.0),
        (["The parrot is called {pet}."], 0.0),
        (["{second}'s parrot is called {pet}."], 0.0),
        ([], 0.0),
        (["{first}'s parrot is called {pet}.", "The harbour master sells umbrellas on Thursdays."], 0.75),
    ],
    ids=["kept", "of nobody", "of another", "lost", "made up"],
)
def test_an_extraction_keeps_what_is_needed_with_its_owner_and_makes_nothing_up(
    recorded: Callable[..., Local], statements: list[str], value: float
) -> None:
    local, given = extraction(recorded)
    first, second = given.conversation.speakers
    (pet,) = given.conversation.questions[0].answers
    told = [each.format(first=first, second=second, pet=pet) for each in statements]
    outputs = [Item("facts", f"fact{n}", "fact", text) for n, text in enumerate(told)]
    objective = local.objectives["extract"]
    assert objective.weight(given) == 1.0
    credit = objective.credit(given, outputs)
    assert credit.value == value
    assert bool(credit.lacks) == (value < 1)


def decision(event: str, target: str | None) -> list[Item]:
    return [Item("decision", "decision", "value", {"event": event, "target": target})]


@pytest.mark.parametrize(
    ("event", "target", "value"),
    [("UPDATE", "m1", 1.0), ("ADD", None, 0.0), ("NONE", None, 0.0), ("DELETE", "m1", 0.0)],
)
def test_a_decision_is_right_if_every_question_that_depends_on_it_says_so(
    recorded: Callable[..., Local], event: str, target: str | None, value: float
) -> None:
    local, _ = recorded()
    objective, spec = local.objectives["decide"], FactMemory.prompts["decide"]
    parts = {
        "fact": (Item("fact", "fact2", "fact", "Anke's parrot is now called Quark."),),
        "memories": (Item("memories", "m1", "memory_entry", "Anke's parrot is called Zibbel."),),
    }
    given = RecordedInput("k", spec, DECIDED, parts, tuple(decision(event, target)))
    assert objective.weight(given) == 1.0
    assert objective.credit(given, given.outputs).value == value
    assert isinstance(objective, KnowsRightOutputs)
    right = objective.right(given)
    assert right is not None
    assert spec.reply(parts, right) == '{"event": "UPDATE", "id": "1"}'


def test_an_answer_is_shown_as_an_example_only_if_its_context_contains_it(recorded: Callable[..., Local]) -> None:
    local, outcomes = recorded()
    objective = local.objectives["answer"]
    assert isinstance(objective, KnowsRightOutputs)
    given = next(
        each for each in local.inputs("answer", outcomes) if each.question and "parrot" in each.question.question
    )
    assert given.question is not None
    right = objective.right(given)
    assert right is not None
    assert right[0].text == given.question.answers[0]
    elsewhere = replace(given, parts={**given.parts, "context": (Item("context", "m", "context", "A lorry is red."),)})
    assert objective.right(elsewhere) is None


def test_an_input_from_which_a_credential_was_removed_is_left_out(recorded: Callable[..., Local]) -> None:
    (first, *_), secret = world().train, "password=kolibri07"
    turns = first.sessions[0].turns
    telling = turns[0].model_copy(update={"text": f"{turns[0].text} See http://h/?{secret}"})
    session = first.sessions[0].model_copy(update={"turns": (telling, *turns[1:])})
    told = first.model_copy(update={"sessions": (session, *first.sessions[1:])})
    local, outcomes = recorded(None, told)
    assert local.inputs("extract", recorded(None, first)[1])
    assert all("[redacted]" not in str(each.parts) for each in local.inputs("extract", outcomes))


def test_a_failed_call_gives_no_credit_and_one_cut_short_gives_none_of_it(
    recorded: Callable[..., Local], scripted_server: ScriptedServer
) -> None:
    local, outcomes = recorded()
    inputs = local.inputs("extract", outcomes)
    text = f"Be thorough.\n{FactMemory.prompts['extract'].text}"
    scripted_server.script = lambda body: Reply(status=500)
    assert local.measure("extract", text, inputs) == [None] * len(inputs)
    scripted_server.script = lambda body: Reply("{", finish_reason="length")
    credits = local.measure("extract", f"Twice.\n{text}", inputs)
    assert [credit and credit.value for credit in credits] == [0.0] * len(inputs)


class AsksTheJudge:
    """A user's objective that has the judge say what is at stake, and what is right."""

    def __init__(self, means: ObjectiveMeans) -> None:
        self._means = means

    def weight(self, execution: RecordedInput) -> float:
        assert execution.question is not None
        return 1 - self._means.judged(execution.question, execution.outputs[0].text).score

    def credit(self, execution: RecordedInput, outputs: Sequence[Item]) -> Credit:
        raise AssertionError("no input has a weight")

    def right(self, execution: RecordedInput) -> Sequence[Item]:
        return execution.outputs


def test_an_input_that_the_judge_could_not_be_asked_about_is_not_measured(
    open_access: Open, tmp_path: Path, scripted_server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    able = WeakModel()

    def failing(body: dict[str, Any]) -> Reply | str:
        return Reply(status=500) if prompt_of(body).startswith("You grade an answer") else able(body)

    scripted_server.script = failing
    system, access = memory(), open_access(retries=0, concurrency=1)
    words = Evaluator(system, access, "short_contains", tmp_path)
    outcomes = words.evaluate(BASELINE, world().train)
    judging = replace(words, model_judge=LlmJudge(access.judge))

    local = LocalEvaluation(system, system.prompts, objectives_of(judging, {}), access)
    inputs = local.inputs("answer", outcomes)
    assert inputs
    assert local.measure("answer", f"Be brief.\n{BASELINE['answer']}", inputs) == [None] * len(inputs)
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith("a recorded input of 'answer' could not be measured: ")

    local = LocalEvaluation(system, system.prompts, objectives_of(judging, {"answer": AsksTheJudge}), access)
    assert local.inputs("answer", outcomes) == []
    assert whole_demonstrations(local.objectives["answer"], system.prompts["answer"], inputs) == []


def test_a_system_that_fails_on_an_input_leaves_it_unmeasured_and_names_its_place(
    recorded: Callable[..., Local], caplog: pytest.LogCaptureFixture
) -> None:
    class Faulty(Rag):
        def rerun(self, *given: Any) -> None:
            raise KeyError("of mine")

    local, outcomes = recorded(Faulty())
    inputs = local.inputs("answer", outcomes)
    assert local.measure("answer", Rag.prompts["answer"].text, inputs) == [None] * len(inputs)
    assert re.search(rf"failed in rerun \({re.escape(__file__)}:\d+\): KeyError: 'of mine'", caplog.text)


def test_requests_with_a_common_beginning_follow_one_another(
    recorded: Callable[..., Local], scripted_server: ScriptedServer
) -> None:
    """A server that keeps the beginnings of prompts computes them once, with one slot too."""
    local, outcomes = recorded(Rag(chunk_tokens=1000, top_k=1))
    inputs = local.inputs("answer", outcomes)
    # Those of each conversation share its only chunk; taken in turn, neighbours share nothing of it.
    apart = [*inputs[::2], *inputs[1::2]]
    before = scripted_server.count
    text = "Be brief.\n" + Rag.prompts["answer"].text
    credits = local.measure("answer", text, apart)
    sent = [prompt_of(body) for body in scripted_server.requests[before:]]
    assert len(sent) == len(inputs) > 3
    assert sent == sorted(sent)
    # The order of the credits is that of the inputs.
    assert credits == [local.measure("answer", text, [given])[0] for given in apart]


def test_each_step_of_a_chain_answers_for_what_it_was_given(recorded: Callable[..., Local]) -> None:
    """Boundaries are no statements, so there is nothing to credit them for; a profile keeps what the facts tell."""
    told = {
        "My parrot is called Zibbel.": DECIDED.facts[0].text,
        "My parrot is called Quark now.": DECIDED.facts[1].text,
    }
    model = EverMemOSModel(
        ends=lambda lines: [1],
        tells=lambda lines: [fact for said, fact in told.items() if any(said in line for line in lines)],
        lists=lambda lines: [line for line in lines if "Quark" not in line],
        answers=lambda lines: "Quark",
    )
    local, outcomes = recorded(EverMemOS(), DECIDED, model=model)
    assert {name: len(local.inputs(name, outcomes)) for name in local.objectives} == {
        "boundary": 0,
        "episode": 2,
        "facts": 2,
        "profile_init": 1,
        "profile_update": 1,
        "sufficiency": 1,
        "queries": 1,
        "answer": 1,
    }
    credits = {
        name: [local.objectives[name].credit(given, given.outputs).value for given in local.inputs(name, outcomes)]
        for name in ("episode", "facts", "profile_init", "profile_update")
    }
    kept = {"profile_init": [1.0], "profile_update": [1.0]}
    assert credits == {"episode": [1.0, 1.0], "facts": [1.0, 0.0], **kept}
    for name in kept:
        (given,) = local.inputs(name, outcomes)
        assert local.objectives[name].credit(given, ()).value == 0.0


def context(*texts: str) -> tuple[Item, ...]:
    return tuple(Item("retrieved_docs", f"m{number}", "context", text) for number, text in enumerate(texts, 1))


@pytest.mark.parametrize(
    ("shown", "outputs", "value"),
    [
        ("Anke's parrot is now called Quark.", [Item("is_sufficient", "is_sufficient", "value", True)], 1.0),
        ("Anke's parrot is now called Quark.", [Item("is_sufficient", "is_sufficient", "value", False)], 0.0),
        ("A lorry is red.", [Item("is_sufficient", "is_sufficient", "value", True)], 0.0),
        ("A lorry is red.", [Item("is_sufficient", "is_sufficient", "value", False)], 1.0),
        ("A lorry is red.", [Item("queries", "query1", "query", "what Anke's parrot is now called")], 1.0),
        ("A lorry is red.", [Item("queries", "query1", "query", "something else")], 0.0),
        ("Anke's parrot is now called Quark.", context("Anke's parrot is now called Quark."), 1.0),
        ("Anke's parrot is now called Quark.", context("A lorry is red."), 0.0),
    ],
)
def test_a_step_of_the_search_is_right_if_it_leads_to_the_answer(
    recorded: Callable[..., Local], shown: str, outputs: Sequence[Item], value: float
) -> None:
    local, _ = recorded(EverMemOS(), DECIDED, model=EverMemOSModel(ends=lambda lines: [1]))
    objective, spec = local.objectives["sufficiency"], EverMemOS.prompts["sufficiency"]
    given = RecordedInput("k", spec, DECIDED, {"retrieved_docs": context(shown)}, tuple(outputs), DECIDED.questions[0])
    assert objective.weight(given) == 1.0
    assert objective.credit(given, outputs).value == value


def test_a_choice_among_texts_that_do_not_tell_the_answer_is_no_step_to_be_credited(
    recorded: Callable[..., Local],
) -> None:
    local, _ = recorded(EverMemOS(), DECIDED, model=EverMemOSModel(ends=lambda lines: [1]))
    objective, spec = local.objectives["sufficiency"], EverMemOS.prompts["sufficiency"]
    parts = {"retrieved_docs": context("A lorry is red.")}
    given = RecordedInput("k", spec, DECIDED, parts, context("A lorry is red."), DECIDED.questions[0])
    assert objective.weight(given) == 0.0
    assert objective.weight(replace(given, question=None, outputs=())) == 0.0


def test_a_step_has_nothing_to_keep_of_what_an_earlier_one_lost(recorded: Callable[..., Local]) -> None:
    model = EverMemOSModel(ends=lambda lines: [1], tells=lambda lines: ["Anke was there."])
    local, outcomes = recorded(EverMemOS(), DECIDED, model=model)
    assert len(local.inputs("episode", outcomes)) == 2
    assert local.inputs("facts", outcomes) == []


def test_a_check_of_what_was_found_is_an_example_of_its_prompt(recorded: Callable[..., Local]) -> None:
    model = EverMemOSModel(ends=lambda lines: [1], answers=lambda lines: "Quark")
    _, outcomes = recorded(EverMemOS(), DECIDED, model=model)
    for name, asked in (("sufficiency", "query"), ("queries", "original_query")):
        failed, (passed,) = examples_of(EverMemOS.prompts[name], outcomes, [])
        assert (failed, passed.inputs[asked]) == ((), DECIDED.questions[0].question)


def test_what_was_read_by_way_of_others_is_rerun_as_it_was(
    recorded: Callable[..., Local], scripted_server: ScriptedServer
) -> None:
    model = EverMemOSModel(ends=lambda lines: [])
    local, outcomes = recorded(EverMemOS(), DECIDED, model=model)
    sent = scripted_server.count
    for name in ("episode", "facts", "answer"):
        local.measure(name, EverMemOS.prompts[name].text, local.inputs(name, outcomes))
    assert scripted_server.count == sent, "the same requests were answered from the cache"
