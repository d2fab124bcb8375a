"""What an intervention decides is what an operation emits: it is recorded, and everything after it goes on with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import pytest
from evermemos_model import EverMemOSModel
from mem0_model import Mem0Model, decide
from scripted_server import ScriptedServer

from experiments.systems.evermemos.system import EverMemOS
from experiments.systems.fact_memory import FactMemory
from experiments.systems.long_context import LongContext
from experiments.systems.mem0.system import Mem0
from experiments.systems.rag import Rag
from tracing.graph.elements import Variable
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import trace
from tracing.systems.conversations import Conversation
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Heard, Intervention, Step, intervene, intervening
from tracing.systems.prompts import baseline_candidate
from tracing.systems.protocol import MemorySystem

TALK = Conversation.model_validate(
    {
        "id": "talk",
        "speakers": ["Ana", "Ben"],
        "sessions": [
            {"id": "D1", "turns": [{"id": "D1:1", "speaker": "Ana", "text": "I own a kite."}]},
            {"id": "D2", "turns": [{"id": "D2:1", "speaker": "Ana", "text": "I own a kite, a red one."}]},
        ],
        "questions": [{"id": "q", "question": "What does Ana own?", "answers": ["kite"]}],
    }
)


class Changed(Intervention):
    """Says `word` wherever something is said, and stores what it likes."""

    def __init__(self, word: str = "changed", event: str = "ADD") -> None:
        self.word, self.event = word, event

    def extracted(self, step: Step, messages: Sequence[Variable], statements: list[str]) -> list[str]:
        return [f"{text} {self.word} in {messages[0].name}" for text in statements if text]

    def decided(self, step: Step, fact: str, shown: Sequence[Entry], change: Change) -> Change:
        target = shown[0].id if self.event in ("UPDATE", "DELETE") and shown else None
        return Change(self.event if shown else "ADD", target, fact)

    def retrieved(self, step: Step, query: Variable, entries: Sequence[Entry], found: list[Entry]) -> list[Entry]:
        return list(reversed(found))

    def presented(self, step: Step, query: Variable, lines: list[str]) -> list[str]:
        return [*lines, f"{self.word} for {query.name}"]

    def answered(self, step: Step, query: Variable, context: Sequence[str], reply: str) -> str:
        return f"{reply} {self.word}"


def script(server: ScriptedServer, system: MemorySystem) -> None:
    facts = json.dumps({"facts": ["Ana owns a kite"]})
    if isinstance(system, Mem0):
        server.script = Mem0Model(extract=lambda lines: ["Ana owns a kite"], update=decide("ADD"), answer="kite")
    elif isinstance(system, EverMemOS):
        server.script = EverMemOSModel(answers=lambda lines: "kite")
    else:
        server.script = lambda body: facts if "Conversation:" in body["messages"][0]["content"] else "kite"


def ran(system: MemorySystem, access: ModelAccess, *interventions: Intervention) -> tuple[list[str], str]:
    """The texts in the memory, and the reply."""
    candidate = baseline_candidate(system.prompts)
    with trace(), ExitStack() as stack:
        for intervention in interventions:
            stack.enter_context(intervene(intervention))
        memory = system.build(TALK, candidate, access)
        reply = system.answer(memory, TALK.questions[0], candidate, access).text
    return [entry["text"] for entry in memory.state["entries"]], reply


SYSTEMS = [Rag(), LongContext(), FactMemory(near=2.0), Mem0(reply_schema="never")]


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_what_is_emitted_is_what_is_stored_answered_and_shown(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], system: MemorySystem
) -> None:
    script(scripted_server, system)
    texts, reply = ran(system, open_access(), Changed())
    assert ["changed in D1:1" in texts[0], "changed in D2:1" in texts[1]] == [True, True]
    assert reply == "kite changed"
    assert "- changed for q" in scripted_server.requests[-1]["messages"][-1]["content"]


@pytest.mark.parametrize("system", [*SYSTEMS, EverMemOS()], ids=lambda system: system.name)
def test_hearing_changes_nothing_and_tells_everything(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], system: MemorySystem
) -> None:
    script(scripted_server, system)
    access = open_access()
    alone = ran(system, access)
    first, again = Heard(), Heard()
    assert ran(system, access, first) == alone
    first.tell(again)
    assert len(again._calls) == len(first._calls) >= 4


@pytest.mark.parametrize("event", ["UPDATE", "DELETE", "NONE"])
def test_mem0_carries_out_the_decision_it_is_given(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], event: str
) -> None:
    script(scripted_server, Mem0())
    texts, _ = ran(Mem0(reply_schema="never"), open_access(), Changed(event=event))
    expected = {
        "UPDATE": ["Ana owns a kite changed in D2:1"],
        "DELETE": [],
        "NONE": ["Ana owns a kite changed in D1:1"],
    }
    assert texts == expected[event]


def test_the_innermost_decides_first_and_none_outside(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    script(scripted_server, Rag())
    _, reply = ran(Rag(), open_access(), Changed("outer"), Changed("inner"))
    assert reply == "kite inner outer"
    assert intervening().answered(Step("answer"), Variable("", "q", "query", "?"), [], "kite") == "kite"
