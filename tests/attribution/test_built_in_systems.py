"""Attribution of failures of the built-in systems as they run, with only the model scripted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from evermemos_model import EverMemOSModel
from scripted_server import ScriptedServer

from attribution.cases import Blame, Case
from attribution.judging.words import judge
from attribution.survival.survival_method import attribute
from experiments.systems.evermemos.system import EverMemOS
from experiments.systems.fact_memory import FactMemory
from experiments.systems.long_context import LongContext
from experiments.systems.mem0.system import Mem0
from experiments.systems.rag import Rag
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session, trace
from tracing.systems.conversations import Conversation
from tracing.systems.protocol import MemorySystem
from tracing.systems.registry import open_system

KNOWN = {
    "D1:1": "Mara's tortoise Brisket only comes out for radicchio.",
    "D1:2": "Ilya's gecko eats mashed papaya.",
    "D1:3": "Mara's tortoise sleeps in a wine crate.",
    "D2:1": "Mara's tortoise sleeps in an old suitcase.",
}


class Model:
    """Extracts the known facts of the turns it is shown, but for `forgets`; decides `event`; answers `reply`."""

    def __init__(
        self, conversation: Conversation, *, forgets: str = "", event: str = "ADD", reply: str = "papaya"
    ) -> None:
        self.turns = {turn.id: turn.text for turn in conversation.turns()}
        self.forgets, self.event, self.reply = forgets, event, reply

    def __call__(self, body: dict[str, Any]) -> str:
        request = body["messages"][-1]["content"]
        schema = json.dumps(body.get("response_format") or {})
        if '"facts"' in schema:
            facts = [fact for turn, fact in KNOWN.items() if turn != self.forgets and self.turns[turn] in request]
            return json.dumps({"facts": facts})
        if '"event"' in schema:
            return json.dumps({"event": self.event, "id": "1"})
        return self.reply


def blame_of(system: MemorySystem, conversation: Conversation, question: str, access: ModelAccess) -> Blame:
    asked = next(one for one in conversation.questions if one.id == question)
    candidate = {name: spec.text for name, spec in system.prompts.items()}
    with trace(prefix="b") as building:
        memory = system.build(conversation, candidate, access)
    with trace(prefix="a") as answering:
        answering.adopt(building.records())
        with session(asked.id):
            answer = system.answer(memory, asked, candidate, access)
    graph: ExecutionGraph = building.graph.merge(answering.graph)
    case = Case(conversation.id, asked, answer.text, judge(answer.text, asked.answers), answer.variable)
    attribution = attribute(case, graph, conversation, system.operations)
    assert attribution.abstained is None
    return attribution.decisive[0]


FAULTS = [
    ("food", {"forgets": "D1:1"}, ("extract_facts", "ExtractionError")),
    ("food", {}, ("answer", "ResponseError")),
    ("bed", {"event": "ADD", "reply": "wine crate"}, ("decide_update", "UpdateError")),
    ("bed", {"event": "NONE", "reply": "wine crate"}, ("decide_update", "UpdateError")),
]
"""What goes wrong with which question, and whose fault it is, in every system that extracts and decides."""


@pytest.mark.parametrize(
    ("question", "faults", "expected"),
    [*FAULTS, ("bed", {"event": "UPDATE", "reply": "wine crate"}, ("answer", "ResponseError"))],
)
def test_the_fact_memory_is_understood(
    pets: Conversation,
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    question: str,
    faults: dict[str, str],
    expected: tuple[str, str],
) -> None:
    scripted_server.script = Model(pets, **faults)
    blame = blame_of(FactMemory(near=0.6, compared=1), pets, question, open_access())
    assert (blame.operation, blame.error_type) == expected


def test_rag_is_understood(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = Model(pets)
    access = open_access()
    answered = blame_of(Rag(top_k=2), pets, "food", access)
    assert (answered.operation, answered.error_type) == ("answer", "ResponseError")
    missed = blame_of(Rag(chunk_tokens=20, top_k=1), pets, "bed", access)
    assert (missed.operation, missed.error_type) == ("retrieve", "RetrievalError")


def test_rag_is_understood_where_words_or_the_model_choose(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    access = open_access(cache=False)
    asked = [one.model_copy(update={"question": "What will the reptile eat?"}) for one in pets.questions[:1]]
    missed = blame_of(
        Rag(chunk_tokens=20, retrieval="sparse"), pets.model_copy(update={"questions": asked}), "food", access
    )
    assert (missed.operation, missed.error_type) == ("retrieve", "RetrievalError")

    scripted_server.script = lambda body: reply_naming(body, "whippet") if "Passages:" in str(body) else "papaya"
    reranked = blame_of(Rag(chunk_tokens=20, top_k=1, rerank=6), pets, "food", access)
    assert (reranked.operation, reranked.error_type) == ("rerank", "RetrievalError")
    scripted_server.script = lambda body: reply_naming(body, "radicchio") if "Passages:" in str(body) else "papaya"
    ignored = blame_of(Rag(chunk_tokens=20, top_k=1, rerank=6), pets, "food", access)
    assert (ignored.operation, ignored.error_type) == ("answer", "ResponseError")


def reply_naming(body: dict[str, Any], word: str) -> str:
    """The reply to a reranking that names the first passage with a word."""
    passages = re.split(r"^(\d+): ", body["messages"][-1]["content"], flags=re.MULTILINE)
    named = next(number for number, text in zip(passages[1::2], passages[2::2], strict=True) if word in text)
    return json.dumps({"best": [named]})


EVERMEMOS_FAULTS: list[tuple[dict[str, Any], dict[str, Any], str, tuple[str, str]]] = [
    ({"forgets": "D1:1"}, {}, "food", ("write_episode", "ExtractionError")),
    ({"enough": lambda documents: True}, {}, "food", ("answer", "ResponseError")),
    ({}, {}, "food", ("answer", "ResponseError")),
    ({"enough": lambda documents: True}, {"candidates": 1, "top_k": 1}, "bed", ("retrieve", "RetrievalError")),
    ({"enough": lambda documents: True}, {"top_k": 1}, "bed", ("check_sufficiency", "RetrievalError")),
    ({"more": ["What does Ilya's gecko eat?"]}, {"top_k": 1}, "bed", ("retrieve_again", "RetrievalError")),
]
"""What goes wrong in EverMemOS, under which settings and with which question, and whose fault it is."""


@pytest.mark.parametrize(("faults", "settings", "question", "expected"), EVERMEMOS_FAULTS)
def test_evermemos_is_understood(
    pets: Conversation,
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    faults: dict[str, Any],
    settings: dict[str, Any],
    question: str,
    expected: tuple[str, str],
) -> None:
    if settings:
        # All texts are alike to this embedding, so that the first session comes first whatever is asked.
        scripted_server.embed = lambda text: [1.0, 0.0]
    said, forgotten = {turn.id: turn.text for turn in pets.turns()}, faults.get("forgets")

    def tell(lines: Sequence[str]) -> list[str]:
        known = {turn: fact for turn, fact in KNOWN.items() if turn != forgotten}
        return [fact for turn, fact in known.items() if any(said[turn] in line for line in lines)]

    mistakes = {name: rule for name, rule in faults.items() if name != "forgets"}
    model = EverMemOSModel(ends=lambda lines: [], tells=tell, answers=lambda lines: "papaya")
    scripted_server.script = replace(model, **mistakes)
    blame = blame_of(EverMemOS(**settings), pets, question, open_access())
    assert (blame.operation, blame.error_type) == expected


@pytest.mark.parametrize(
    ("window", "expected"),
    [(60, ("trim", "DeletionError")), (1000, ("answer", "ResponseError"))],
)
def test_long_context_is_understood(
    pets: Conversation,
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    window: int,
    expected: tuple[str, str],
) -> None:
    scripted_server.script = Model(pets)
    blame = blame_of(LongContext(window_tokens=window), pets, "food", open_access())
    assert (blame.operation, blame.error_type) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "faults", "expected"),
    FAULTS,
)
def test_mem0_is_understood(
    pets: Conversation,
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    question: str,
    faults: dict[str, str],
    expected: tuple[str, str],
) -> None:
    model = Model(pets, **faults)

    def scripted(body: dict[str, Any]) -> str:
        decided = (((body.get("response_format") or {}).get("json_schema") or {}).get("schema") or {})["properties"]
        if "memory" not in decided:
            return model(body)
        # The schema says for which facts; the first session's find an empty memory.
        items = [one["properties"] for one in decided["memory"]["prefixItems"]]
        event = model.event if model.event in items[0]["event"]["enum"] else "ADD"
        return json.dumps({"memory": [{"text": one["text"]["const"], "event": event, "id": "0"} for one in items]})

    scripted_server.script = lambda body: scripted(body) if "response_format" in body else model(body)
    blame = blame_of(Mem0(reply_schema="always"), pets, question, open_access())
    assert (blame.operation, blame.error_type) == expected


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(("question", "faults", "expected"), FAULTS[:2])
def test_mem0_2_is_understood_through_its_worker(
    pets: Conversation,
    environments: Callable[[str], None],
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    question: str,
    faults: dict[str, str],
    expected: tuple[str, str],
) -> None:
    environments("mem0@2")
    model = Model(pets, **faults)

    def scripted(body: dict[str, Any]) -> str:
        if "response_format" not in body:
            return model(body)
        facts = json.loads(model({**body, "response_format": {"facts": []}}))["facts"]
        return json.dumps({"memory": [{"text": fact} for fact in facts]})

    scripted_server.script = scripted
    blame = blame_of(open_system("mem0@2"), pets, question, open_access())
    assert (blame.operation, blame.error_type) == expected
