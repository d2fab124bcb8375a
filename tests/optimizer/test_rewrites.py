import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from memory_recordings import CONVERSATIONS, Watched, attributions_of, script
from scripted_server import ScriptedServer

from attribution.cases import Attribution
from attribution.judging.words import judge
from attribution.text.tokens import contains
from experiments.systems.fact_memory import PROMPTS
from experiments.systems.mem0.prompts import PROMPTS as MEM0
from optimizer.evaluation.evaluator import Outcome
from optimizer.proposers.bank import INSTRUCTIONS, BankProposer
from optimizer.proposers.demonstrations import MOST_TOKENS, DemonstrationProposer, demonstrations_of
from optimizer.proposers.examples import examples_of, symptoms_of
from optimizer.proposers.rewrites import Proposer, Rewrite, RewriteRequest, admit
from optimizer.proposers.structure import FORMAT_LINES, OPERATORS, TEXTS, StructureProposer, format_lines
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import read_conversations
from tracing.systems.prompts import Contract, render
from tracing.systems.protocol import Stage

BASELINE = {name: spec.text for name, spec in PROMPTS.items()}
STAGES: dict[str, Stage] = {"extract": "extract", "decide": "update", "answer": "answer"}
TRAIN = [each.id for each in CONVERSATIONS]


@pytest.fixture
def recorded(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path
) -> tuple[list[Outcome], list[Attribution]]:
    scripted_server.script = script
    recorder = Watched(open_access(), tmp_path)
    recordings = recorder.evaluate(BASELINE, CONVERSATIONS)
    return recordings, attributions_of(recordings, recorder.system)


def request(
    name: str, recorded: tuple[list[Outcome], list[Attribution]] | None = None, *, count: int = 4, seed: int = 0
) -> RewriteRequest:
    spec = PROMPTS[name]
    failed, passed = examples_of(spec, *recorded) if recorded else ((), ())
    return RewriteRequest(spec, STAGES[name], spec.text, BASELINE, None, failed, passed, count, seed)


def test_json_is_asked_for_where_replies_are_json_alone() -> None:
    known = request("extract")
    plain = replace(
        known,
        prompt=replace(known.prompt, contract=Contract(placeholders=known.prompt.contract.placeholders)),
        text="List what is told.\n{conversation}",
    )
    assert format_lines(known)
    assert format_lines(plain) == []
    assert format_lines(request("answer")) == list(FORMAT_LINES["answer"])
    assert not any("JSON" in each.text for each in BankProposer().propose(plain))


def test_examples_show_the_request_as_it_was(recorded: tuple[list[Outcome], list[Attribution]]) -> None:
    failed, passed = examples_of(PROMPTS["answer"], *recorded)
    assert {example.case.question.id for example in failed} == {"c1-q1", "c2-q1"}
    assert {example.case.question.id for example in passed} == {"c1-q2", "c2-q2"}
    example = next(example for example in failed if example.case.conversation == "c1")
    assert example.inputs["question"] == "What is the parrot of Anke called?"
    assert "- Anke's parrot is called Zibbel." in example.inputs["context"].splitlines()
    assert example.output == example.case.reply
    assert example.attribution is not None
    assert symptoms_of(example, "answer") == {"long reply"}


def test_by_a_metric_of_form_a_sentence_around_the_right_answer_is_a_long_reply(
    recorded: tuple[list[Outcome], list[Attribution]],
) -> None:
    failed, _ = examples_of(PROMPTS["answer"], *recorded)
    example = next(example for example in failed if not example.wants_unknown)
    answer = example.case.question.answers[0]
    reply = f"It is called {answer}, I think."
    case = replace(example.case, reply=reply, judgement=judge(reply, [answer], "f1"))
    assert not case.passed
    spoken = replace(example, case=case, outputs=(replace(example.outputs[0], value=reply),))
    assert symptoms_of(spoken, "answer") == {"long reply"}


def test_a_passing_case_points_at_the_extraction_and_decision_behind_it(
    recorded: tuple[list[Outcome], list[Attribution]],
) -> None:
    _, extracted = examples_of(PROMPTS["extract"], *recorded)
    assert {example.inputs["conversation"] for example in extracted} == {
        "Bodo: Please forget the paint of my lorry.",
        "Dirk: Please forget the paint of my lorry.",
    }
    _, decided = examples_of(PROMPTS["decide"], *recorded)
    example = next(example for example in decided if example.case.conversation == "c1")
    assert json.loads(example.output) == {"event": "DELETE", "id": "1"}
    assert example.inputs["memories"].startswith("1: Bodo's lorry is ochre.")


def test_an_author_is_told_of_a_failure_that_looks_like_no_kind(
    recorded: tuple[list[Outcome], list[Attribution]],
) -> None:
    """Prompts of a search, as for queries and reranking, were never given to an author."""
    failed, _ = examples_of(PROMPTS["answer"], *recorded)
    assert symptoms_of(failed[0], "retrieve") == {"led astray"}
    assert "led astray" in TEXTS["failures"]


def test_tainted_outcomes_give_no_examples(recorded: tuple[list[Outcome], list[Attribution]]) -> None:
    recordings, attributions = recorded
    tainted = [replace(each, tainted="cut short") for each in recordings]
    assert examples_of(PROMPTS["answer"], tainted, attributions) == ((), ())


def proposers() -> list[Proposer]:
    return [BankProposer(), StructureProposer(), DemonstrationProposer(TRAIN)]


@pytest.mark.parametrize("name", PROMPTS)
def test_rewrites_are_admissible_new_bounded_and_reproducible(
    name: str, recorded: tuple[list[Outcome], list[Attribution]]
) -> None:
    asked = request(name, recorded, count=5)
    for proposer in proposers():
        rewrites = proposer.propose(asked)
        assert len(rewrites) <= 5
        admitted, rejected = admit(rewrites, PROMPTS[name], asked.tried | {asked.text})
        assert (admitted, rejected) == (rewrites, [])
        assert rewrites == proposer.propose(asked)
        again = proposer.propose(replace(asked, tried=frozenset(each.text for each in rewrites)))
        assert not {each.text for each in again} & {each.text for each in rewrites}


def test_bank_and_structure_have_something_for_every_prompt() -> None:
    for name in PROMPTS:
        assert len(BankProposer().propose(request(name))) == 4
        assert StructureProposer().propose(request(name))


def test_whole_texts_that_a_prompt_has_besides_come_first_and_once() -> None:
    asked = request("answer")
    others = ("Notes:\n{context}\n{question} Answer:", "It has no place for the context: {question}")
    asked = replace(asked, prompt=replace(asked.prompt, alternatives=others))
    first, *rest = BankProposer().propose(asked)
    assert (first.text, first.reason) == (others[0], "another whole text for the task")
    assert others[1] not in {each.text for each in rest}
    again = BankProposer().propose(replace(asked, tried=frozenset({first.text})))
    assert first.text not in {each.text for each in again}


@pytest.mark.parametrize("name", ["extract", "update"])
def test_a_prompt_without_placeholders_is_rewritten_too(
    name: str, recorded: tuple[list[Outcome], list[Attribution]]
) -> None:
    likeness = {"extract": "extract", "update": "decide"}[name]
    asked = replace(request(likeness, recorded), prompt=MEM0[name], text=MEM0[name].text)
    found = {proposer.name: proposer.propose(asked) for proposer in proposers()}
    for rewrites in found.values():
        assert admit(rewrites, MEM0[name], frozenset({asked.text}))[0] == rewrites
    assert found["bank"]
    assert found["demonstrations"] == []


def test_what_fails_decides_what_is_proposed_first(recorded: tuple[list[Outcome], list[Attribution]]) -> None:
    for seed in range(5):
        first = BankProposer().propose(request("answer", recorded, seed=seed))[0]
        treating = [each for each in INSTRUCTIONS if "long reply" in each.symptoms and each.stage == "answer"]
        assert any(each.text in first.text for each in treating)
        structure = StructureProposer().propose(request("answer", recorded, seed=seed))[0]
        assert any(each.name == structure.reason and "long reply" in each.treats for each in OPERATORS)


def test_demonstrations_come_from_passing_train_cases_only(recorded: tuple[list[Outcome], list[Attribution]]) -> None:
    asked = request("decide", recorded)
    rewrites = DemonstrationProposer(TRAIN).propose(asked)
    assert rewrites
    rendered = render(rewrites[0].text, {"fact": "F", "memories": "M"})
    assert '{"event": "DELETE", "id": "1"}' in rendered
    assert rendered.endswith("M\n\nNew fact: F")
    only_one = DemonstrationProposer(["c2"]).propose(asked)
    assert only_one
    assert not any("ochre" in each.text or "Bodo" in each.text for each in only_one)
    assert DemonstrationProposer([]).propose(asked) == []


def test_unknown_is_never_the_only_demonstration_of_an_answer(
    recorded: tuple[list[Outcome], list[Attribution]],
) -> None:
    asked = request("answer", recorded)
    assert {each.kind for each in demonstrations_of("answer", asked.passed)} == {"unknown"}
    assert DemonstrationProposer(TRAIN).propose(asked) == []


def test_an_answer_demonstration_pairs_a_value_with_an_unknown(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path
) -> None:
    scripted_server.script = script
    candidate = {**BASELINE, "answer": "Reply with one word.\n" + BASELINE["answer"]}
    recordings = Watched(open_access(), tmp_path).evaluate(candidate, CONVERSATIONS)
    assert all(case.passed for each in recordings for case in each.cases)
    passed = examples_of(PROMPTS["answer"], recordings, [])[1]
    asked = replace(request("answer"), passed=passed)
    text = DemonstrationProposer(TRAIN).propose(asked)[0].text
    shown = text[: text.index("Now this one:")]
    assert shown.count("Example:") == 2
    cue = BASELINE["answer"].splitlines()[-1]
    assert f"{cue} unknown" in shown
    assert f"{cue} Zibbel" in shown or f"{cue} Muffin" in shown
    extracted = demonstrations_of("extract", examples_of(PROMPTS["extract"], recordings, [])[1])
    assert {each.reply for each in extracted} == {
        '{"facts": ["Anke\'s parrot is called Zibbel."]}',
        '{"facts": ["Cleo\'s parrot is called Muffin."]}',
    }
    assert all(each.tokens <= MOST_TOKENS for each in extracted)
    shortest = min(each.tokens for each in demonstrations_of("answer", passed))
    assert {each.tokens for each in demonstrations_of("answer", passed, shortest)} == {shortest}


def test_the_contract_gate_rejects_and_never_repairs() -> None:
    spec = PROMPTS["extract"]
    good = Rewrite("extract", 'Facts as {{"facts": []}} of {conversation}', "hand", "")
    bad = {
        "missing": 'Facts as {{"facts": []}}',
        "unknown": 'Facts as {{"facts": []}} of {conversation} {more}',
        "braces": 'Facts as {"facts": []} of {conversation}',
        "marker": "Facts of {conversation}",
        "empty": " ",
        "characters": good.text + " " * 10_000,
    }
    rewrites = [good, *(replace(good, text=text) for text in bad.values()), good, replace(good, prompt="answer")]
    admitted, rejected = admit(rewrites, spec)
    assert admitted == [good]
    for (word, text), (rewrite, problems) in zip(bad.items(), rejected[:6], strict=True):
        assert rewrite.text == text
        assert word in " ".join(problems)
    assert "already" in rejected[6][1][0]
    assert "'answer'" in rejected[7][1][0]
    assert admit([good], spec, frozenset({good.text}))[0] == []


@pytest.mark.slow
def test_bank_texts_hold_no_value_or_name_of_the_bundled_sample() -> None:
    folder = Path(__file__).parents[2] / "experiments" / "sample"
    everyday = {"unknown", "not known", "no longer known"}
    found = set()
    for path in (folder / f"{split}.jsonl" for split in ("train", "validation", "test", "sealed")):
        for conversation in read_conversations(path):
            values = {answer for question in conversation.questions for answer in question.answers} - everyday
            for each in INSTRUCTIONS:
                found |= {
                    (each.id, value) for value in values | set(conversation.speakers) if contains(each.text, value)
                }
    assert {value for _, value in found} <= {"four", "one", "two"}
