"""Examples and demonstrations of a system that names its prompts, placeholders and roles as it likes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from memory_recordings import CONVERSATIONS
from scripted_server import ScriptedServer, prompt_of

from attribution.survival.survival_method import attribute
from optimizer.evaluation.evaluator import Evaluator
from optimizer.proposers.bank import BankProposer
from optimizer.proposers.demonstrations import DemonstrationProposer
from optimizer.proposers.examples import examples_of, symptoms_of
from optimizer.proposers.rewrites import RewriteRequest, admit
from optimizer.proposers.structure import StructureProposer
from tracing import operation, session, variable
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation, Question
from tracing.systems.layouts import Item, Layout, plain_reply
from tracing.systems.prompts import Candidate, Contract, PromptSpec, baseline_candidate, render
from tracing.systems.protocol import Answer, Memory, OperationSpec, Stage

JOT = PromptSpec(
    name="jot",
    text="Write down what is told, a line for each thing.\n\nTold:\n{told}\nNotes:",
    operation="jot",
    contract=Contract(placeholders=frozenset({"told"})),
    purpose="Write down what is told.",
    builds=True,
)
REPLY = PromptSpec(
    name="reply",
    text="Reply from the notes.\n\nNotes:\n{notes}\n\nAsked: {asked}\nReply:",
    operation="reply",
    contract=Contract(placeholders=frozenset({"notes", "asked"})),
    purpose="Answer the question from the notes.",
    builds=False,
    layout=Layout(lists={"notes": lambda texts: " / ".join(texts)}),
)
STAGES: dict[str, Stage] = {"jot": "extract", "reply": "answer"}


class Jotter:
    """Notes in plain lines; every note is read for every answer."""

    prompts = {"jot": JOT, "reply": REPLY}  # noqa: RUF012
    operations = (OperationSpec("jot", "extract", "jot"), OperationSpec("reply", "answer", "reply"))

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        notes: list[str] = []
        prompt = variable(candidate["jot"], name="jot", kind="prompt")
        for dialogue in conversation.sessions:
            with session(dialogue.id):
                told = [variable(turn.spoken, name=turn.id, kind="message") for turn in dialogue.turns]
                with operation("jot", kind="llm", inputs={"told": told, "prompt": prompt}) as op:
                    text = "\n".join(turn.spoken for turn in dialogue.turns)
                    request = render(candidate["jot"], {"told": text})
                    for line in access.task.chat(
                        [{"role": "user", "content": request}], max_tokens=200
                    ).text.splitlines():
                        op.output("note", line, name=f"n{len(notes)}", kind="fact")
                        notes.append(line)
        return Memory({"notes": notes})

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        notes = [variable(text, name=f"n{n}", kind="context") for n, text in enumerate(memory.state["notes"])]
        asked = variable(question.question, name=question.id, kind="query")
        prompt = variable(candidate["reply"], name="reply", kind="prompt")
        with operation("reply", kind="llm", inputs={"notes": notes, "asked": asked, "prompt": prompt}) as op:
            values = {"notes": " / ".join(memory.state["notes"]), "asked": question.question}
            text = access.task.chat(
                [{"role": "user", "content": render(candidate["reply"], values)}], max_tokens=40
            ).text
            said = op.output("prediction", text, kind="prediction")
        return Answer(text, said.id or None)


def script(body: dict[str, Any]) -> str:
    text = prompt_of(body)
    if "Told:" not in text:
        name = next((word.strip(".") for word in text.split() if word in ("Zibbel.", "Muffin.")), "unknown")
        return name if "parrot" in text.rpartition("Asked:")[2] else "That is something which I would say is ochre"
    lines = [line.partition(": ") for line in text.partition("Told:\n")[2].splitlines() if ": " in line]
    return "\n".join(f"{who} said: {what}" for who, _, what in lines)


@pytest.fixture
def requests(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path
) -> dict[str, RewriteRequest]:
    scripted_server.script = script
    system = Jotter()
    baseline = baseline_candidate(system.prompts)
    outcomes = Evaluator(system, open_access(), "short_contains", tmp_path).evaluate(baseline, CONVERSATIONS)
    assert [each.tainted for each in outcomes] == [None, None]
    failures = [
        attribute(case, each.graph, each.conversation, system.operations)
        for each in outcomes
        for case in each.cases
        if not case.passed
    ]
    return {
        name: RewriteRequest(
            spec, STAGES[name], spec.text, baseline, None, *examples_of(spec, outcomes, failures), count=6, seed=0
        )
        for name, spec in system.prompts.items()
    }


def test_an_example_is_written_as_the_systems_own_request(requests: dict[str, RewriteRequest]) -> None:
    answered = next(each for each in requests["reply"].passed if each.case.conversation == "c1")
    assert answered.inputs["asked"] == "What is the parrot of Anke called?"
    assert answered.inputs["notes"].startswith("Anke said: My parrot is called Zibbel. / Bodo said: What lovely")
    assert answered.output == "Zibbel"
    jotted = next(each for each in requests["jot"].passed if each.case.conversation == "c1")
    assert jotted.inputs["told"].splitlines()[0] == "Anke: My parrot is called Zibbel."
    assert jotted.output.splitlines()[0] == "Anke said: My parrot is called Zibbel."
    wrong = requests["reply"].failed[0]
    assert symptoms_of(wrong, "answer") == {"missed unknown"}


def test_demonstrations_are_in_the_systems_own_layout(requests: dict[str, RewriteRequest]) -> None:
    proposer = DemonstrationProposer(each.id for each in CONVERSATIONS)
    shown = [each.text for each in proposer.propose(requests["reply"])]
    assert any(
        "Notes:\nAnke said: My parrot is called Zibbel. / Bodo said: What lovely weather we have.\n\n"
        "Asked: What is the parrot of Anke called?\nReply: Zibbel" in text
        for text in shown
    )
    shown = [each.text for each in proposer.propose(requests["jot"])]
    assert any(
        "Told:\nAnke: My parrot is called Zibbel.\nNotes: Anke said: My parrot is called Zibbel.\n" in text
        for text in shown
    )


def test_every_rewrite_keeps_the_systems_own_contract(requests: dict[str, RewriteRequest]) -> None:
    for request in requests.values():
        for proposer in (BankProposer(), StructureProposer(), DemonstrationProposer(["c1", "c2"])):
            rewrites = proposer.propose(request)
            assert rewrites
            assert admit(rewrites, request.prompt, frozenset({request.text}))[0] == rewrites
    twice = [each.text for each in StructureProposer().propose(requests["reply"]) if each.text.count("{asked}") == 2]
    assert twice, "the question is known by what was recorded, not by the name of its placeholder"


def test_a_prompt_of_a_stage_without_instructions_is_edited_and_not_refused(
    requests: dict[str, RewriteRequest],
) -> None:
    request = replace(requests["reply"], stage="retrieve")
    assert StructureProposer().propose(request)
    assert BankProposer().propose(request) == []
    assert DemonstrationProposer(["c1", "c2"]).propose(request) == []


def item(role: str, value: Any, kind: str = "value") -> Item:
    return Item(role, role, kind, value)


def test_a_reply_is_written_from_what_was_recorded() -> None:
    schema = {"properties": {"facts": {"type": "array"}, "mood": {"type": "string"}}}
    assert plain_reply(None, [item("prediction", "Oslo")]) == "Oslo"
    assert plain_reply(None, [item("note", "a"), item("note", "b")]) == "a\nb"
    assert plain_reply(None, [item("choice", {"event": "ADD"})]) == '{"event": "ADD"}'
    facts = [item("facts", "a"), item("facts", "ö"), item("mood", "fine")]
    assert plain_reply(schema, facts) == '{"facts": ["a", "ö"], "mood": "fine"}'
    assert json.loads(plain_reply(schema, [])) == {"facts": []}
    word_for_word = [item("prediction", "Oslo"), item("reply", "Oslo, I think.", "reply")]
    assert plain_reply(None, word_for_word) == "Oslo, I think."
