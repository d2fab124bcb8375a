"""A system without `rerun`: what its operations asked is asked again with other texts, whoever made the call."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from scripted_server import ScriptedServer, prompt_of
from scripted_world import world

from attribution.methods import survival
from optimizer.evaluation.evaluator import Evaluator, Outcome
from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.objectives.objectives import objectives_of
from optimizer.proposers.bank import INSTRUCTIONS
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopSettings
from tracing import instrument, operation, session, variable
from tracing.graph.elements import Variable
from tracing.llm.access import ModelAccess
from tracing.llm.forwarding.forwarded_access import ForwardedAccess
from tracing.llm.forwarding.forwarded_calls import answered, described
from tracing.systems.conversations import Conversation, Question
from tracing.systems.layouts import Item, Layout, Parts
from tracing.systems.prompts import Candidate, Contract, PromptSpec, baseline_candidate, render
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import Text, noted, noted_again, recalled, variables_of

NOTE = PromptSpec(
    name="note",
    text="Write down what is told, a line for each thing.\n\nTold:\n{told}\nNotes:",
    operation="write_notes",
    contract=Contract(placeholders=frozenset({"told"})),
    purpose="Write down what is told.",
    builds=True,
)
ANSWER = PromptSpec(
    name="answer",
    text="Notes:\n{notes}\n\nQuestion: {asked}\nAnswer:",
    operation="answer",
    contract=Contract(placeholders=frozenset({"notes", "asked"})),
    purpose="Answer the question from the notes.",
    builds=False,
)
BETTER = {
    "note": f"Leave out nothing. {NOTE.text}",
    "answer": "Be brief.\nQuestion: {asked}\n\nNotes:\n{notes}\nAnswer:",
}
"""Texts with which the scripted model does better; the placeholders of one stand in another order."""

CURES = {
    stage: [cure, *(instruction.text for instruction in INSTRUCTIONS if instruction.stage == stage)]
    for stage, cure in (("extract", "Leave out nothing"), ("answer", "Be brief"))
}

Open = Callable[..., ModelAccess]
Ask = Callable[[ModelAccess, str], str]


def by_access(access: ModelAccess, request: str) -> str:
    messages = [{"role": "system", "content": "You keep notes."}, {"role": "user", "content": request}]
    return access.task.chat(messages, max_tokens=200, stop=["END"], whole=False).text


def by_gateway(access: ModelAccess, request: str) -> str:
    gateway = access.gateway()
    with gateway.attached() as attached, OpenAI(base_url=gateway.base_url, api_key=gateway.key) as client:
        return said(client, access, request, attached.headers)


def by_own_client(access: ModelAccess, request: str) -> str:
    with OpenAI(base_url=access.task.settings.base_url, api_key="none") as client, instrument.openai(client):
        return said(client, access, request, {})


PROGRAM = """
import json, os, sys, urllib.request
body = {"model": os.environ["MODEL"], "messages": [{"role": "user", "content": sys.stdin.read()}], "max_tokens": 200}
headers = {"Authorization": "Bearer " + os.environ["KEY"], "Content-Type": "application/json"}
headers |= json.loads(os.environ["HEADERS"])
request = urllib.request.Request(os.environ["URL"] + "/chat/completions", json.dumps(body).encode(), headers)
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"], end="")
"""


def by_another_program(access: ModelAccess, request: str) -> str:
    gateway = access.gateway()
    with gateway.attached() as attached:
        named = {"URL": gateway.base_url, "KEY": gateway.key, "HEADERS": json.dumps(dict(attached.headers))}
        environment = {**os.environ, **named, "MODEL": access.task.settings.model}
        program = [sys.executable, "-I", "-c", PROGRAM]
        ended = subprocess.run(program, input=request, env=environment, capture_output=True, text=True, check=True)
        return ended.stdout


def in_a_worker(access: ModelAccess, request: str) -> str:
    return by_access(ForwardedAccess(partial(answered, access), described(access)), request)


def said(client: OpenAI, access: ModelAccess, request: str, headers: Any) -> str:
    reply = client.chat.completions.create(
        model=access.task.settings.model,
        messages=[{"role": "user", "content": [{"type": "text", "text": request}]}],
        max_tokens=200,
        extra_headers=headers,
    )
    return reply.choices[0].message.content or ""


class Notes:
    """Takes notes of each session and answers from all of them."""

    name = "notes"
    operations = (OperationSpec("write_notes", "extract", "note"), OperationSpec("answer", "answer", "answer"))

    def __init__(self, ask: Ask = by_access, *, layout: Layout | None = None) -> None:
        self.ask = ask
        self.prompts = {"note": NOTE if layout is None else replace(NOTE, layout=layout), "answer": ANSWER}

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        notes: list[dict[str, str]] = []
        for dialogue in conversation.sessions:
            with session(dialogue.id):
                told = [noted(turn.spoken, name=turn.id, kind="message") for turn in dialogue.turns]
                self.write_notes(notes, told, candidate["note"], access)
        return Memory({"notes": notes})

    def write_notes(
        self, notes: list[dict[str, str]], told: Sequence[Text], template: str, access: ModelAccess
    ) -> None:
        inputs = {"told": variables_of(told), "prompt": variable(template, name="note", kind="prompt")}
        with operation("write_notes", inputs=inputs) as op:
            request = render(template, {"told": "\n".join(f"> {text.text}" for text in told)})
            for line in self.notes(access, request):
                note = op.output("note", line, name=f"n{len(notes)}", kind="memory_entry")
                notes.append({"text": line, "variable": note.id})

    def notes(self, access: ModelAccess, request: str) -> list[str]:
        with operation("call_model"):
            reply = self.ask(access, request)
        return [] if reply == "NONE" else [line.removeprefix("- ") for line in reply.splitlines()]

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        notes = memory.state["notes"]
        variables = recalled(note["variable"] for note in notes)
        entries = [Text(note["text"], entry) for note, entry in zip(notes, variables, strict=True)]
        prediction = self.reply(entries, noted(question.question, name=question.id, kind="query"), candidate, access)
        return Answer(prediction.value, prediction.id or None)

    def reply(self, notes: Sequence[Text], asked: Text, candidate: Candidate, access: ModelAccess) -> Variable:
        prompt = variable(candidate["answer"], name="answer", kind="prompt")
        inputs = {"notes": variables_of(notes), "asked": asked.variable, "prompt": prompt}
        with operation("answer", inputs=inputs) as op:
            values = {"notes": "\n".join(note.text for note in notes), "asked": asked.text}
            reply = self.ask(access, render(candidate["answer"], values))
            return op.output("prediction", reply.rpartition("ANSWER: ")[2], kind="prediction")


class Reruns(Notes):
    """The same with `rerun`."""

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        if prompt == "note":
            self.write_notes([], noted_again(parts["told"]), candidate["note"], access)
        else:
            self.reply(noted_again(parts["notes"]), *noted_again(parts["asked"]), candidate, access)


def model(body: dict[str, Any], overlooks: str = "[135]") -> str:
    """Overlooks every other parrot and talks too much, if nothing in the prompt forbids it."""
    request = prompt_of(body)
    if "Told:" in request:
        cured = any(cure in request for cure in CURES["extract"])
        owner = r"(\w+)" if cured else rf"(\w+(?<!{overlooks}))"
        names = re.findall(rf"{owner}: My parrot is called (\w+)", request)
        hues = re.findall(r"(\w+): My lorry is (\w+)", request)
        lines = [f"- {who}'s parrot is called {pet}." for who, pet in names]
        return "\n".join([*lines, *(f"- {who}'s lorry is {hue}." for who, hue in hues)]) or "NONE"
    asked = re.search(r"Question: .* (?:of|does) (\w+)", request)
    found = re.search(rf"{asked[1]}'s (?:parrot is called|lorry is) (\w+)", request) if asked else None
    reply = f"ANSWER: {found[1] if found else 'unknown'}"
    brief = any(cure in request for cure in CURES["answer"])
    return reply if brief else f"{reply}, or so they have told each other at length in all of these notes"


@pytest.fixture
def recorded(open_access: Open, tmp_path: Path, scripted_server: ScriptedServer) -> Callable[..., Any]:
    scripted_server.script = model

    def record(system: Any, **options: Any) -> tuple[LocalEvaluation, list[Outcome], Evaluator]:
        access = open_access(**{"cache": True, **options})
        evaluator = Evaluator(system, access, "short_contains", tmp_path / "memories")
        outcomes = evaluator.evaluate(baseline_candidate(system.prompts), world(train=6).train)
        assert [outcome.tainted for outcome in outcomes] == [None] * 6
        return LocalEvaluation(system, system.prompts, objectives_of(evaluator, {}), access), outcomes, evaluator

    return record


@pytest.mark.parametrize("ask", [by_access, by_gateway, by_another_program, in_a_worker, by_own_client])
def test_other_texts_are_measured_by_what_was_asked(
    recorded: Callable[..., Any], scripted_server: ScriptedServer, ask: Ask
) -> None:
    local, outcomes, evaluator = recorded(Notes(ask))
    for prompt, spec in Notes().prompts.items():
        inputs = local.inputs(prompt, outcomes)
        assert len(inputs) >= 6
        assert local.asking.about[prompt] == (
            f"{prompt}: {len(inputs)} of {len(inputs)} recorded inputs can be asked again with other texts"
        )
        assert local.reruns_as_recorded(prompt, spec.text, inputs[0])
        before = scripted_server.count
        own = local.measure(prompt, spec.text, inputs)
        assert own == [local.objectives[prompt].credit(execution, execution.outputs) for execution in inputs]
        # The same request is answered by the cache; the calls of the system's own client are not in it.
        assert scripted_server.count - before == (len(inputs) if ask is by_own_client else 0)
        better = local.measure(prompt, BETTER[prompt], inputs)
        assert sum(credit.value for credit in better) > sum(credit.value for credit in own)
        measured = [texts_in(body) for body in scripted_server.requests[-len(inputs) :]]
        evaluator.evaluate({**baseline_candidate(Notes().prompts), prompt: BETTER[prompt]}, world(train=6).train)
        # The system itself asks the same with this text, and where it asks through the access, the cache answers.
        asked = [texts_in(body) for body in scripted_server.requests]
        assert all(asked.count(texts) == (2 if ask is by_own_client else 1) for texts in measured)


def texts_in(body: dict[str, Any]) -> list[str]:
    contents = [message["content"] for message in body["messages"]]
    return [text if isinstance(text, str) else "\n".join(part["text"] for part in text) for text in contents]


def test_calls_are_booked_for_the_operation_whose_input_is_asked_again(recorded: Callable[..., Any]) -> None:
    local, outcomes, evaluator = recorded(Notes())
    inputs = local.inputs("answer", outcomes)
    before = evaluator.access.meter.usage_of("answer").calls_made
    local.measure("answer", BETTER["answer"], inputs)
    assert evaluator.access.meter.usage_of("answer").calls_made == before + len(inputs)


class AsksTwice(Notes):
    def notes(self, access: ModelAccess, request: str) -> list[str]:
        return [*super().notes(access, request), *super().notes(access, f"{request} Again:")]


class Shouts(Notes):
    def notes(self, access: ModelAccess, request: str) -> list[str]:
        return super().notes(access, request.replace("Write down what is told", "WRITE DOWN WHAT IS TOLD"))


class Counts(Notes):
    def notes(self, access: ModelAccess, request: str) -> list[str]:
        return [f"{number} {note[::-1]}" for number, note in enumerate(super().notes(access, request), start=4)]


class Drops(Notes):
    def notes(self, access: ModelAccess, request: str) -> list[str]:
        super().notes(access, request)
        return []


def unrecorded(access: ModelAccess, request: str) -> str:
    with OpenAI(base_url=access.task.settings.base_url, api_key="none") as client:
        return said(client, access, request, {})


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        (AsksTwice(), "it made 2 model calls"),
        (Shouts(), "its prompt is not found in its request"),
        (Counts(), "its outputs are not read from its reply (Layout.read says how)"),
        (Drops(), "nothing was made of any reply, so how they are read cannot be seen"),
        (Notes(unrecorded), "its model call was not recorded"),
    ],
    ids=["two calls", "another prompt", "another reading", "nothing read", "a client that nobody records"],
)
def test_what_cannot_be_asked_again_is_told_and_compared_on_whole_conversations(
    recorded: Callable[..., Any], system: Notes, reason: str
) -> None:
    local, outcomes, _ = recorded(system)
    inputs = local.inputs("note", outcomes)
    assert inputs, "they still say what is at stake"
    assert local.asking.about["note"] == (
        f"note: 0 of {len(inputs)} recorded inputs can be asked again with other texts; {len(inputs)} cannot: {reason}"
        "; its rewrites are compared on whole conversations"
    )
    assert not local.reruns_as_recorded("note", NOTE.text, inputs[0])


def test_a_layout_says_how_replies_are_read(recorded: Callable[..., Any]) -> None:
    def read(reply: str) -> list[Item]:
        lines = [] if reply == "NONE" else [line.removeprefix("- ")[::-1] for line in reply.splitlines()]
        return [Item("note", "", "memory_entry", f"{number} {line}") for number, line in enumerate(lines, start=4)]

    local, outcomes, _ = recorded(Counts(layout=Layout(read=read)))
    inputs = local.inputs("note", outcomes)
    assert local.reruns_as_recorded("note", NOTE.text, inputs[0])
    overlooked = next(execution for execution in inputs if "Anketrain1: My parrot" in execution.parts["told"][0].text)
    again = local.asking.outputs("note", BETTER["note"], overlooked, "again")
    notes = ["Anketrain1's parrot is called Zibbeltrain1.", "Bodotrain1's lorry is ochretrain1."]
    assert [item.text for item in again] == [f"{number} {note[::-1]}" for number, note in enumerate(notes, start=4)]


def test_memories_built_before_requests_were_recorded_are_built_again(recorded: Callable[..., Any]) -> None:
    local, outcomes, _ = recorded(Reruns())
    assert local.asking is None
    assert not any("request" in step.attributes for outcome in outcomes for step in outcome.graph.operations.values())
    local, outcomes, _ = recorded(Notes())
    assert local.inputs("note", outcomes)
    assert not local.asking.whole


@pytest.mark.slow
def test_a_search_goes_the_same_way_with_rerun_and_without(
    open_access: Open, tmp_path: Path, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = partial(model, overlooks="nobody")
    results = []
    for system in (Notes(), Reruns()):
        access = open_access(cache=False, retries=0, concurrency=1)
        result = optimize(
            evaluator=Evaluator(system, access, "short_contains", tmp_path / type(system).__name__),
            splits=world(train=5, validation=5, test=2),
            baseline=baseline_candidate(system.prompts),
            settings=LoopSettings(rounds=1),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=Silent(),  # type: ignore[arg-type]
            optimizer=open_optimizer("local-search"),
        )
        results.append(result)
    again, rerun = results
    assert again.champion_candidate == rerun.champion_candidate != baseline_candidate(Notes().prompts)
    tried = [rewrite for record in again.rounds for rewrite in record.rewrites]
    assert tried == [rewrite for record in rerun.rounds for rewrite in record.rewrites]
    assert any(rewrite.local is not None for rewrite in tried)
    assert again.search is not None
    assert rerun.search is not None
    assert again.search.calls == rerun.search.calls
    assert [bool(record.asked_again) for record in again.rounds] == [True] * len(again.rounds)
    assert not any(record.asked_again for record in rerun.rounds)


class Silent:
    """An observer that keeps nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: None
