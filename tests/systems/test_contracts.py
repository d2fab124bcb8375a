"""The built-in systems pass the shipped conformance suite, and the suite notices systems that break it."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from scripted_server import ScriptedServer, prompt_of

from experiments.systems.fact_memory import PROMPTS, FactMemory
from experiments.systems.long_context import LongContext
from experiments.systems.rag import Rag
from tracing.errors import ModelError
from tracing.llm.access import ModelAccess
from tracing.recording.recorder import current_recorder
from tracing.recording.trace_context import variable
from tracing.systems.conformance import MemorySystemConformance
from tracing.systems.conversations import Conversation, DialogueSession, Question
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate, PromptSpec
from tracing.systems.protocol import Answer, Memory, MemorySystem, OperationSpec

NEAR = 0.3
"""Cosine of the scripted embeddings from which texts of the suite's conversation are near each other."""


def scripted(body: dict[str, Any]) -> str:
    """Every line of a conversation is a fact; new facts are added; the answer is the first memory."""
    request, schema = prompt_of(body), json.dumps(body.get("response_format") or {})
    if '"facts"' in schema:
        return json.dumps({"facts": request.partition("Conversation:\n")[2].splitlines()[:4]})
    if '"event"' in schema:
        return json.dumps({"event": "ADD", "id": "1"})
    if '"best"' in schema:
        return json.dumps({"best": ["2", "1"]})
    return next((line[2:] for line in request.splitlines() if line.startswith("- ")), "unknown")


class Scripted(MemorySystemConformance):
    """The suite with the scripted server as the model."""

    @pytest.fixture(autouse=True)
    def _models(self, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]) -> None:
        scripted_server.script = scripted
        self.opened = open_access(cache=False)

    def access(self) -> ModelAccess:
        return self.opened


class TestFactMemory(Scripted):
    def system(self) -> MemorySystem:
        return FactMemory(near=NEAR)


class TestRag(Scripted):
    def system(self) -> MemorySystem:
        return Rag(chunk_tokens=20)


class TestRagSearchedByBoth(Scripted):
    def system(self) -> MemorySystem:
        return Rag(chunk_tokens=40, overlap=20, retrieval="hybrid", rerank=3)


class TestRagSearchedByWords(Scripted):
    def system(self) -> MemorySystem:
        return Rag(chunk_tokens=20, retrieval="sparse")


class TestLongContext(Scripted):
    def system(self) -> MemorySystem:
        return LongContext(window_tokens=60)


class Forwarding(FactMemory):
    """A fact memory to break in one place."""

    def __init__(self) -> None:
        super().__init__(near=NEAR)


class BrokenSeed(Forwarding):
    prompts: Mapping[str, PromptSpec] = {**PROMPTS, "answer": replace(PROMPTS["answer"], text="Answer: {question}")}


class AstrayPrompt(Forwarding):
    prompts: Mapping[str, PromptSpec] = {**PROMPTS, "answer": replace(PROMPTS["answer"], operation="reply")}


class SilentOperation(Forwarding):
    operations = (OperationSpec("rerank", "retrieve", None), *FactMemory.operations)


class Unstable(Forwarding):
    builds = 0

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        self.builds += 1
        access.embedding.embed([f"build {self.builds}"])
        return super().build(conversation, candidate, access)


class OtherEachTime(Forwarding):
    made = itertools.count()

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        entries = super().build(conversation, candidate, access).state["entries"]
        return Memory({"entries": entries[next(self.made) % 2 :]})


class Learning(Forwarding):
    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        memory.state["entries"].append(memory.state["entries"][0])
        return super().answer(memory, question, candidate, access)


class Opaque(Forwarding):
    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        return Memory({**super().build(conversation, candidate, access).state, "seen": {1, 2}})


class Forgetful(Forwarding):
    """Keeps what it needs for an answer in itself rather than in the memory."""

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        self.entries = super().build(conversation, candidate, access).state["entries"]
        return Memory({"entries": []})

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        known = Memory({"entries": getattr(self, "entries", [])})
        return super().answer(known, question, candidate, access)


class Entangled(Forwarding):
    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        access.embedding.embed([candidate["answer"]])
        return super().build(conversation, candidate, access)


class Stubborn(Forwarding):
    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        return super().answer(memory, question, {"answer": PROMPTS["answer"].text}, access)


class Swallowing(Forwarding):
    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        try:
            return super().build(conversation, candidate, access)
        except ModelError:
            return Memory({"entries": []})


class Unrecorded(Forwarding):
    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        return replace(super().answer(memory, question, candidate, access), variable="a999")


class Nameless(Forwarding):
    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        sessions = [
            one.model_copy(update={"turns": tuple(turn.model_copy(update={"id": "turn"}) for turn in one.turns)})
            for one in conversation.sessions
        ]
        return super().build(conversation.model_copy(update={"sessions": tuple(sessions)}), candidate, access)


class Empty(Forwarding):
    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        return super().with_entries([], access)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        return super().build_from_facts([], candidate, access)

    def answer_from(
        self, context: Sequence[str], question: Question, candidate: Candidate, access: ModelAccess
    ) -> Answer:
        return super().answer_from([], question, candidate, access)


class Shortening(Forwarding):
    """Runs an operation again without its first input."""

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        super().rerun(prompt, {name: items[1:] or items for name, items in parts.items()}, candidate, access)


class Mixing(Forwarding):
    """Keeps the memories of all conversations in one store."""

    def __init__(self) -> None:
        super().__init__()
        self.store: list[Any] = []

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        self.store = [*self.store, *super().build(conversation, candidate, access).state["entries"]]
        return Memory({"entries": self.store})


class Handing(Forwarding):
    """Answers everybody from the memory that it built last."""

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        self.last = super().build(conversation, candidate, access)
        return self.last

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        return super().answer(self.last, question, candidate, access)


class OneAtATime(Forwarding):
    """Keeps in itself which conversation it reads."""

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        self.reading = conversation
        time.sleep(0.1)
        return super().build(self.reading, candidate, access)


class Hasty(Forwarding):
    """Reads on before it gives the memory of a stretch."""

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        return super().build(conversation, candidate, access)

    def build_stepwise(
        self, stretches: Sequence[Sequence[DialogueSession]], candidate: Candidate, access: ModelAccess
    ) -> Iterator[Memory]:
        *_, memory = super().build_stepwise(stretches, candidate, access)
        yield from [memory] * len(stretches)


class Loose(Forwarding):
    @property
    def settings(self) -> Mapping[str, Any]:
        return {"sizes": (1, 2)}


class Observed(Forwarding):
    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        entries = memory.state["entries"] if current_recorder() else []
        return super().answer(Memory({"entries": entries}), question, candidate, access)


class Echoing(Forwarding):
    """Goes on with what was recorded, in place of what it was given."""

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        sessions = []
        for one in conversation.sessions:
            texts = [str(variable(turn.text, name=turn.id).value) for turn in one.turns]
            turns = [turn.model_copy(update={"text": text}) for turn, text in zip(one.turns, texts, strict=True)]
            sessions.append(one.model_copy(update={"turns": tuple(turns)}))
        return super().build(conversation.model_copy(update={"sessions": tuple(sessions)}), candidate, access)


BROKEN: list[tuple[type[Forwarding], str, str]] = [
    (Loose, "test_the_description_is_whole", "settings must be the same"),
    (BrokenSeed, "test_the_description_is_whole", "breaks its contract"),
    (AstrayPrompt, "test_the_description_is_whole", "names the operation reply"),
    (SilentOperation, "test_every_listed_operation_is_recorded", "rerank"),
    (Nameless, "test_messages_carry_turn_ids", "'D1:1'"),
    (Unstable, "test_equal_arguments_give_equal_requests_and_graphs", "a second build asked"),
    (OtherEachTime, "test_equal_arguments_give_equal_requests_and_graphs", "gave another memory"),
    (Observed, "test_nothing_depends_on_being_recorded", "asked the models something else"),
    (Echoing, "test_credentials_in_a_conversation_are_sent_and_not_recorded", "sent the models other texts"),
    (Learning, "test_answering_leaves_the_memory_alone", "changed the memory"),
    (Opaque, "test_a_memory_restored_from_json_answers_the_same", "not JSON-serialisable"),
    (Forgetful, "test_a_memory_restored_from_json_answers_the_same", "restored memory"),
    (Entangled, "test_prompts_that_do_not_build_leave_the_build_alone", "answer says builds=False"),
    (Stubborn, "test_a_tuned_prompt_reaches_the_model", "tuned prompt answer"),
    (Swallowing, "test_a_model_error_leaves_the_build", "returned a memory all the same"),
    (Unrecorded, "test_the_prediction_is_recorded", "a999"),
    (Mixing, "test_two_tenants_never_see_each_others_memories", "memory of one tenant holds 'kingfisher'"),
    (Handing, "test_two_tenants_never_see_each_others_memories", "'bullfinch', which another tenant said, was sent"),
    (OneAtATime, "test_two_tenants_never_see_each_others_memories", "built at once differ"),
    (
        Hasty,
        "test_a_memory_on_the_way_is_that_of_the_sessions_so_far",
        "after the first session is not that of it alone",
    ),
    (Empty, "test_given_entries_are_what_it_answers_from", "the entry it was given"),
    (Empty, "test_given_facts_are_stored_without_extraction", "the fact that was given"),
    (Empty, "test_a_given_context_replaces_retrieval", "the context that was given"),
    (Shortening, "test_an_operation_runs_again_on_what_was_recorded", "rerun of .* made .* of what gave"),
]


@pytest.mark.parametrize(("broken", "test", "complaint"), BROKEN)
def test_a_system_that_breaks_the_contract_fails_the_suite(
    broken: type[Forwarding],
    test: str,
    complaint: str,
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
) -> None:
    opened = open_access(cache=False)

    class Suite(MemorySystemConformance):
        def system(self) -> MemorySystem:
            return broken()

        def access(self) -> ModelAccess:
            return opened

    scripted_server.script = scripted
    with pytest.raises(AssertionError, match=complaint):
        getattr(Suite(), test)()


def test_every_test_of_the_suite_is_seen_to_fail() -> None:
    tests = {name for name in dir(MemorySystemConformance) if name.startswith("test_")}
    assert tests == {test for _, test, _ in BROKEN}
