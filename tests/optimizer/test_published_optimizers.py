"""Optimizers from elsewhere tune the very texts that the system sends, keep its contracts, and leave nothing behind."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memory_recordings import CONVERSATIONS, Watched, script
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import LENGTHY, WeakModel, for_dspy, kind_of, memory, world

from attribution.methods import survival
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Evaluator
from optimizer.proposers.demonstrations import demonstrations_of
from optimizer.proposers.template import EXAMPLE
from optimizer.published.candidate_search import CandidateSearch
from optimizer.published.carried_prompt import CarriedPrompt
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures, unattributed_examples
from optimizer.tuning.results import LoopResult, LoopSettings
from tracing.errors import RunError
from tracing.llm.access import ModelAccess
from tracing.systems.prompts import placeholders_of

BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
DSPY = ("miprov2", "simba", "copro")
LOOP = "optimizer.search.optimize"
"""It warns of replies that are right and too long, as the baseline prompts' are here."""
Run = Callable[..., LoopResult]


class Author(WeakModel):
    """A weak model that writes the instructions it was made with, to requests of DSPy's and to our own.

    The train conversations differ from the start, as SIMBA needs it: one is right, and one stays wrong.
    """

    def __init__(self, instruction: str, *, form: str = "{}") -> None:
        super().__init__("answer")
        self.cures = ["Be brief, {please}."]
        self.instruction, self.form = instruction, form

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        text = prompt_of(body)
        if "Respond with" in text and "[[ ## " in text:
            return self.form.format(self.for_dspy(text))
        reply, asked = super().__call__(body), text.rpartition("Question:")[2]
        if kind_of(body) != "answer" or not isinstance(reply, str):
            return reply
        if "train0" in asked and (right := re.search(r"Zibbeltrain0", reply)):
            return right[0]
        return "nonsense" if "train1" in asked and "parrot" not in asked else reply

    def for_dspy(self, text: str) -> str:
        return for_dspy(text, self.instruction)


@pytest.fixture
def run(scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path) -> Run:
    def run_it(
        name: str, model: Any, *, temperature: float = 0.0, progress: Callable[..., None] | None = None, **settings: Any
    ) -> LoopResult:
        scripted_server.script = model
        access, system = open_access(retries=0, temperature=temperature), memory()

        class Silent:
            def __getattr__(self, called: str) -> Callable[..., None]:
                return progress if progress and called == "progress" else lambda *told, **more: None

        return optimize(
            evaluator=Evaluator(system, access, "short_contains", tmp_path),
            splits=world(train=3, validation=4, test=2),
            baseline=BASELINE,
            settings=LoopSettings(**{"rounds": 3, "proposals": 3, **settings}),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=Silent(),
            optimizer=open_optimizer(name),
        )

    return run_it


def sent_with(server: ScriptedServer, template: str) -> list[dict[str, Any]]:
    """The requests whose only message is this template, filled, byte for byte."""
    pieces = re.split(r"\{\w+\}", template.replace("{{", "\0").replace("}}", "\1"))
    plain = [re.escape(piece.replace("\0", "{").replace("\1", "}")) for piece in pieces]
    filled = re.compile("(?s:.*)".join(plain))
    return [
        body
        for body in server.requests
        if len(body["messages"]) == 1 and filled.fullmatch(body["messages"][0]["content"])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*DSPY, "bootstrap"])
def test_what_is_tuned_is_byte_for_byte_what_the_system_sends(
    run: Run, scripted_server: ScriptedServer, name: str
) -> None:
    # The braces are literal text in the instruction, and doubled in the prompt.
    model = Author("Be brief, {please}.")
    if name == "bootstrap":
        model.cures = [EXAMPLE]
    result = run(name, model, rounds=6)
    champion = result.champion_candidate["answer"]
    assert champion != BASELINE["answer"]
    if name != "bootstrap":
        assert "Be brief, {{please}}." in champion
    asked = [text for body in sent_with(scripted_server, champion) for text in [prompt_of(body)]]
    assert any("test" in text.rpartition("Question:")[2] for text in asked)
    assert all("[[ ##" not in text for text in asked)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("name", DSPY)
@pytest.mark.parametrize(
    ("instruction", "problem"),
    [
        ("Read {conversation}, {fact}, {context} and be sloppy.", "not tried: the instruction holds {context}"),
        ("Be sloppy. " * 700, "not tried: the text has "),
    ],
)
def test_a_candidate_that_breaks_its_contract_is_never_sent_and_recorded_with_why(
    run: Run, scripted_server: ScriptedServer, name: str, instruction: str, problem: str
) -> None:
    result = run(name, Author(instruction), rounds=4)
    assert result.champion_candidate["answer"].count("sloppy") == 0
    for body in scripted_server.requests:
        assert "sloppy" not in prompt_of(body) or "Respond with" in prompt_of(body)
    tried = [each for record in result.rounds for each in record.rewrites if "sloppy" in each.text]
    gates = [each.gate and str(each.gate) for each in tried if each.prompt == "answer"]
    assert gates
    assert all(gate is not None and gate.startswith(problem) for gate in gates)


@pytest.mark.parametrize(
    "form", ["<think>\n[[ ## proposed_instruction ## ]]\nA draft\n</think>\n{}", "Be brief, {{please}}.\x00{}"]
)
def test_an_author_that_reasons_or_leaves_dspys_form_out_is_understood(run: Run, form: str) -> None:
    model = Author("Be brief, {please}.", form=form)
    if "\x00" in form:
        model.for_dspy = lambda text: ""  # type: ignore[method-assign]
        model.form = form.partition("\x00")[0]
    result = run("copro", model, rounds=1)
    assert "Be brief, {{please}}." in result.champion_candidate["answer"]
    assert not any("A draft" in each.text for record in result.rounds for each in record.rewrites)


@pytest.mark.parametrize("name", DSPY)
def test_the_author_is_told_what_each_prompt_is_for_and_what_it_must_keep(
    run: Run, scripted_server: ScriptedServer, name: str
) -> None:
    run(name, Author("Be brief."), rounds=3)
    asked = [prompt_of(body) for body in scripted_server.requests if "Respond with" in prompt_of(body)]
    assert asked
    for spec in FactMemory.prompts.values():
        assert all(f"- {spec.name}_prompt: {spec.purpose}" in text for text in asked)
        assert all(marker in text for text in asked for marker in spec.contract.markers)


def test_an_author_whose_replies_are_cut_short_is_told_and_the_search_goes_on(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    class Cut(Author):
        def __call__(self, body: dict[str, Any]) -> Reply | str:
            said = super().__call__(body)
            return Reply(str(said), finish_reason="length") if "Respond with" in prompt_of(body) else said

    with caplog.at_level(logging.WARNING):
        result = run("copro", Cut("Be brief, {please}."), rounds=1)
    assert result.champion_candidate == BASELINE
    told = [record.getMessage() for record in caplog.records if record.name != LOOP]
    assert [message.count("cut short") for message in told] == [1]
    gates = [str(each.gate or "") for record in result.rounds for each in record.rewrites]
    assert gates
    assert all(gate.startswith("not tried: the instruction is empty") for gate in gates)


@pytest.mark.slow
@pytest.mark.parametrize("name", DSPY)
def test_dspys_settings_and_output_are_as_they_were(
    run: Run, name: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    import dspy

    def state() -> Any:
        return {key: repr(value) for key, value in dspy.settings.config.items()}, logging.getLogger("dspy").level

    before = state()
    run(name, Author("Be brief, {please}."))
    assert state() == before
    assert capsys.readouterr() == ("", "")
    assert not [record for record in caplog.records if record.name != LOOP]


def test_demonstrations_are_shown_in_the_prompts_own_layout_under_a_new_instruction(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.script = script
    recorder = Watched(open_access(retries=0), tmp_path)
    spec = FactMemory.prompts["answer"]
    _, passed = unattributed_examples(spec, FactMemory.operations, recorder.evaluate(BASELINE, CONVERSATIONS))
    shown = demonstrations_of("answer", passed)[0]
    carried = CarriedPrompt(spec, spec.text)
    assert carried.text(carried.instruction) == spec.text
    text = carried.text("Be brief, {please}.", [shown])
    assert text.startswith(f"Be brief, {{{{please}}}}.\n\n{EXAMPLE}\n")
    assert all(value in text for value in shown.values.values())
    assert placeholders_of(text) == spec.contract.placeholders
    assert not spec.contract.violations(text)


def test_the_lines_of_the_replys_form_follow_another_instruction_and_stay() -> None:
    spec = FactMemory.prompts["decide"]
    task, form = "Compare the new fact with the stored memories and choose what to do.", spec.text.partition("\n")[2]
    carried = CarriedPrompt(spec, spec.text)
    assert carried.instruction == task
    assert carried.text("Choose.\nThink {first}.") == f"Choose.\nThink {{{{first}}}}.\n{form}"
    assert not carried.violations("Choose.")
    assert "These lines follow it and stay:\nADD: the fact is new.\n" in carried.request
    assert 'Reply as JSON: {"event": "...", "id": "..."}' in carried.request


@pytest.mark.parametrize(
    ("head", "instruction"),
    [
        ('Reply as JSON: {{"facts": []}}', 'Reply as JSON: {"facts": []}'),
        ('List facts.\n{{\n"facts": [\n"one"\n]\n}}', 'List facts.\n{\n"facts": [\n"one"\n]\n}'),
        ('List facts.\n{{"facts": []}}\nNothing else.', 'List facts.\n{"facts": []}\nNothing else.'),
        ('List facts.\n{{\n"facts": []\n}}', "List facts."),
    ],
    ids=["nothing else", "in part", "not the end", "of several lines"],
)
def test_form_that_is_not_the_whole_end_of_an_instruction_is_part_of_it(head: str, instruction: str) -> None:
    text = f"{head}\n\nConversation:\n{{conversation}}"
    carried = CarriedPrompt(FactMemory.prompts["extract"], text)
    assert carried.instruction == instruction
    assert carried.text(instruction) == text
    assert ('Keep exactly: "facts"' in carried.request) == ('"facts"' in instruction)


def test_bootstrapped_demonstrations_come_from_passing_train_cases_alone(run: Run) -> None:
    model = Author("")
    model.cures = [EXAMPLE]
    result = run("bootstrap", model)
    tried = [each.text for record in result.rounds for each in record.rewrites]
    assert tried
    assert any("train" in text for text in tried)
    for text in tried:
        assert "validation" not in text.replace("value", "")
        assert "Answer in a few words: Zibbel" not in text.replace("Zibbeltrain0", ""), "those cases failed"
        assert "lorry of Bodotrain1" not in text, "that case failed"


class Feedback(WeakModel):
    """Comments, merges and rewrites as the reference method asks for it; its rewrites make everything worse."""

    def __init__(self, advice: str = "Be poetic.") -> None:
        super().__init__("answer", curable=False)
        self.advice = advice
        self.asked: list[str] = []
        self.comments = threading.Barrier(3, timeout=60)

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        text = prompt_of(body)
        asked_for = {"comment": "In two sentences", "merge": "Merge them", "rewrite": "a better instruction"}
        for kind, mark in asked_for.items():
            if mark in text:
                self.asked.append(kind)
                if kind == "comment":
                    # The three do not wait for each other: all of them must be here before any is answered.
                    self.comments.wait()
                current = re.search(r"```\n(.*?)\n```", text, re.DOTALL)
                return f"```\n{self.advice}\n{current[1]}\n```" if current else f"A {kind}."
        reply = super().__call__(body)
        return LENGTHY.format("verse") if "Be poetic." in text and kind_of(body) == "answer" else reply


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_the_reference_method_merges_the_feedback_on_every_failure_and_keeps_its_rewrite_whatever_it_scores(
    run: Run, temperature: float
) -> None:
    model, phases = Feedback(), list[tuple[Any, ...]]()
    result = run("reference", model, temperature=temperature, rounds=1, progress=lambda *told: phases.append(told))
    assert model.asked == ["comment"] * 3 + ["merge", "rewrite"]
    feedback = "round 1: feedback on cases that answer failed"
    assert [done for phase, done, total, _ in phases if phase == feedback and total == 3] == [0, 1, 2, 3]
    (record,) = result.rounds
    assert record.accepted
    assert record.validation_score < result.baseline["validation"].score
    assert [str(each.gate) for each in record.rewrites] == ["accepted without a comparison"]
    assert result.champion_candidate["answer"] == f"Be poetic.\n\n{BASELINE['answer']}"
    assert record.blame


def test_an_instruction_with_fences_of_its_own_is_taken_whole(run: Run) -> None:
    advice = "Be poetic.\n```\nAs verse\n```\nAlways."
    result = run("reference", Feedback(advice), rounds=1)
    assert result.champion_candidate["answer"] == f"{advice}\n\n{BASELINE['answer']}"


@pytest.mark.parametrize("name", ["gepa", "miprov2"])
def test_a_phase_tells_each_request_to_the_author(run: Run, name: str) -> None:
    phases = list[tuple[Any, ...]]()
    run(name, Author("Be brief."), rounds=1, progress=lambda *told: phases.append(told))
    asked = [(done, total) for phase, done, total, _ in phases if phase == f"{name}: requests to the author"]
    assert asked
    assert asked == [(n, n + 1) for n in range(len(asked))]


@pytest.mark.parametrize("name", DSPY)
def test_a_fault_in_an_evaluation_ends_the_search_and_is_no_score(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def faulty(*given: Any, **more: Any) -> Any:
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr(CandidateSearch, "measure", faulty)
    with pytest.raises(RunError, match=f"'{name}' failed: ZeroDivisionError: in the middle"):
        run(name, Author("Be brief."))
