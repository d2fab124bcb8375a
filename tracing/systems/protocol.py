"""What memtune needs of a memory system under test. `contract_suite.py` checks an implementation of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation, Question
from tracing.systems.prompts import Candidate, PromptSpec

Stage = Literal["extract", "update", "retrieve", "answer"]
"""What an operation does with information: take it in, keep it current, find it again, use it."""


@dataclass(frozen=True, slots=True)
class OperationSpec:
    """An operation a system records, in pipeline order.

    Attributes:
        name: as it appears in the execution graph.
        stage: what it does with information.
        prompt: name of the prompt that steers it, or None where no prompt can mend it.
    """

    name: str
    stage: Stage
    prompt: str | None


@dataclass(frozen=True, slots=True)
class Memory:
    """A built memory: JSON-serialisable state. Entries name the variables of the build's trace they came from."""

    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply to a question; `variable` is the id of the prediction in the current trace, where one was recorded."""

    text: str
    variable: str | None = None


@runtime_checkable
class MemorySystem(Protocol):
    """A memory system that memtune can build, question and re-prompt.

    `build` and `answer` record their operations in the current trace (`tracing.operation`), call models only through
    the given access, and keep no state between calls: equal arguments give equal requests.
    """

    name: str
    version: str
    settings: Mapping[str, Any]
    """Everything besides prompts and models that shapes the result (top-k, thresholds); JSON-serialisable."""
    prompts: Mapping[str, PromptSpec]
    operations: Sequence[OperationSpec]

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation into a new memory. Model errors propagate: a partial memory is never returned."""
        ...

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from `memory` without changing it."""
        ...

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Store gold facts session by session as if extraction had found them: the ladder's rung after extraction."""
        ...

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory that holds exactly these entries: the ladder's rung after storing."""
        ...

    def answer_from(
        self, context: Sequence[str], question: Question, candidate: Candidate, access: ModelAccess
    ) -> Answer:
        """Answer from a given context instead of retrieval: the ladder's rung after retrieval."""
        ...
