"""What memtune needs of a memory system under test, and the small Protocols of what a system may have beside it.

`MemorySystem` is all that a run needs. A feature that needs more asks for one of the small Protocols, and says so in
one line where a system lacks it. `contract_suite.py` checks an implementation.
"""

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

    `build` and `answer` record their operations in the current trace (`tracing.operation`) and keep no state between
    calls: equal arguments give equal requests. They call models through the given access, or with a client of their
    own; then caching and budgets do not reach those calls (docs/extending.md).
    """

    @property
    def prompts(self) -> Mapping[str, PromptSpec]:
        """The texts that can be tuned, by name."""
        ...

    @property
    def operations(self) -> Sequence[OperationSpec]:
        """What it records, in pipeline order; the answer comes last."""
        ...

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation into a new memory. Model errors propagate: a partial memory is never returned."""
        ...

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from `memory` without changing it."""
        ...


@runtime_checkable
class Named(Protocol):
    """A system with a name of its own; without one, its class names it."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class Versioned(Protocol):
    """A system that says when memories that it built earlier are no longer what it would build; otherwise "0"."""

    @property
    def version(self) -> str: ...


@runtime_checkable
class HasSettings(Protocol):
    """A system with settings: all besides prompts and models that shapes the result (top-k, thresholds), as JSON."""

    @property
    def settings(self) -> Mapping[str, Any]: ...


@runtime_checkable
class ChecksItself(Protocol):
    """A system that needs something installed or set up."""

    def require_library(self) -> None:
        """Return where all it needs is there.

        Raises:
            ConfigError: something is missing; names the remedy.
        """
        ...


@runtime_checkable
class HasCaveats(Protocol):
    """A system whose results must be read with care."""

    def caveats(self, *, embedded: bool) -> Sequence[str]:
        """What must be known of its results, one sentence each; `embedded`: whether the task model is embedded."""
        ...


@runtime_checkable
class BuildsFromFacts(Protocol):
    """The ladder's rung after extraction."""

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Store gold facts session by session as if extraction had found them."""
        ...


@runtime_checkable
class HoldsEntries(Protocol):
    """The ladder's rung after storing."""

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory that holds exactly these entries."""
        ...


@runtime_checkable
class AnswersFromContext(Protocol):
    """The ladder's rung after retrieval."""

    def answer_from(
        self, context: Sequence[str], question: Question, candidate: Candidate, access: ModelAccess
    ) -> Answer:
        """Answer from a given context instead of retrieval."""
        ...
