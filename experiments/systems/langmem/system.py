"""LangMem as a memory system: its memory store manager reads and searches, and the shared answer operation replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.systems.building_blocks.answering import (
    ANSWER_PROMPT,
    SharedAnswer,
    answer_again,
    answer_from_context,
)
from experiments.systems.building_blocks.choices import Settings, check_least
from experiments.systems.building_blocks.prompt_files import prompts_in
from experiments.systems.building_blocks.recall import entries_of, memory_of, recorded_retrieval
from experiments.systems.exporting.library_targets import TARGETS
from experiments.systems.libraries import NeedsLibrary
from experiments.systems.worker import in_worker
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import session
from tracing.systems.conversations import Conversation, Question
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import noted, noted_again

if TYPE_CHECKING:
    from experiments.systems.langmem.manager import RecordedManager

PROMPTS = {**prompts_in(Path(__file__).with_name("prompts.toml")), "answer": ANSWER_PROMPT}

_TARGET = TARGETS["langmem"].environment


@in_worker(requirements=_TARGET.requirements, name=_TARGET.name)
class LangMem(SharedAnswer, NeedsLibrary):
    """The real LangMem 0.0.30: search for a window of turns, call tools to change memories, store, search, answer.

    Args:
        top_k: memories given to the answer.
        window: turns of one call of the manager.
        query_limit: stored memories that the manager is shown for a window.
        enable_deletes: whether it may remove memories; LangMem alone does not let it.
        max_tokens: maximum length of a reply of the manager.
    """

    name = "langmem"
    # Memories built by another release of the library are other memories.
    version = f"1 with {_TARGET.requirements[0]}"
    prompts = PROMPTS
    operations = (
        OperationSpec("manage_memory", "extract", "instructions"),
        # What the same reply says of each memory: add, change or remove.
        OperationSpec("decide_update", "update", "instructions"),
        OperationSpec("store", "update", None),
        OperationSpec("retrieve", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )
    library = replace(TARGETS["langmem"].library, release=_TARGET.requirements[0].partition("==")[2])
    settings = Settings("top_k", "window", "query_limit", "enable_deletes", "max_tokens")
    ranges: Mapping[str, Sequence[int]] = {"top_k": (3, 5, 8), "query_limit": (3, 5, 8)}

    def __init__(
        self,
        *,
        top_k: int = 5,
        window: int = 4,
        query_limit: int = 5,
        enable_deletes: bool = False,
        max_tokens: int = 1024,
    ) -> None:
        check_least(1, window=window, max_tokens=max_tokens)
        # LangMem looks up as many windows as a fourth of this, and finds nothing with none.
        check_least(4, query_limit=query_limit)
        check_least(0, top_k=top_k)
        self.top_k, self.window, self.query_limit, self.max_tokens = top_k, window, query_limit, max_tokens
        self.enable_deletes = enable_deletes

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation, a window of turns at a time; a failed call raises, whatever LangMem makes of it."""
        manager = self._manager(access, candidate)
        for dialogue in conversation.sessions:
            with session(dialogue.id, time=dialogue.time):
                for start in range(0, len(dialogue.turns), self.window):
                    turns = dialogue.turns[start : start + self.window]
                    manager.read([noted(turn.spoken, name=turn.id, kind="message") for turn in turns])
        return memory_of(manager.entries.values())

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from what LangMem's search finds."""
        entries = entries_of(memory)
        query = noted(question.question, name=question.id, kind="query")
        manager = self._manager(access, candidate)
        manager.restore(entries)
        _, context = recorded_retrieval(
            "retrieve", {"query": [query]}, entries, lambda: manager.search(question.question, self.top_k)
        )
        return answer_from_context(query, context, candidate["answer"], access.task)

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Put these facts into LangMem's store."""
        manager = self._manager(access, candidate)
        for number, texts in enumerate(sessions, start=1):
            with session(f"given{number}"):
                manager.keep([noted(text, name="given", kind="fact") for text in texts])
        return memory_of(manager.entries.values())

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory of exactly these facts."""
        return memory_of(self._manager(access, {"instructions": ""}).given(texts))

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once on recorded inputs."""
        if prompt == "answer":
            return answer_again(parts, candidate["answer"], access.task)
        manager = self._manager(access, candidate)
        return manager.read_again(noted_again(parts["messages"]), noted_again(parts.get("memories", ())))

    def _manager(self, access: ModelAccess, candidate: Candidate) -> RecordedManager:
        from experiments.systems.langmem.manager import RecordedManager

        return RecordedManager(
            access,
            candidate["instructions"],
            query_limit=self.query_limit,
            deletes=self.enable_deletes,
            max_tokens=self.max_tokens,
        )
