"""What memtune needs of a memory system under test, and small Protocols for optional features.

`MemorySystem` is all that a run needs. A feature that needs more requires one of the small Protocols, and says so in
one line if a system lacks it. `conformance.py` checks an implementation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from tracing.systems.conversations import Conversation, DialogueSession, Question
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate, PromptSpec

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess

Stage = Literal["extract", "update", "retrieve", "answer"]
"""What an operation does with information: take it in, keep it current, find it again, use it."""


@dataclass(frozen=True, slots=True)
class OperationSpec:
    """An operation a system records, in pipeline order.

    Attributes:
        name: as it appears in the execution graph.
        stage: what it does with information.
        prompt: name of the prompt that steers it, or None if no prompt can improve it.

    Example:
        >>> operations = (OperationSpec("retrieve", "retrieve", None), OperationSpec("answer", "answer", "reply"))
        >>> [operation.name for operation in operations if operation.prompt == "reply"]
        ['answer']
    """

    name: str
    stage: Stage
    prompt: str | None


def stage_of(operations: Sequence[OperationSpec], prompt: str) -> Stage:
    """The stage of the first of a system's operations that a prompt steers."""
    return next(operation.stage for operation in operations if operation.prompt == prompt)


@dataclass(frozen=True, slots=True)
class Memory:
    """A built memory: JSON-serialisable state. Entries name their variables in the build's trace.

    Example:
        >>> memory = Memory({"notes": [{"text": "Mara lives in Oslo.", "variable": "v7"}]})
        >>> memory.state["notes"][0]["text"]
        'Mara lives in Oslo.'
    """

    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply to a question; `variable` is the id of the prediction in the current trace, if one was recorded.

    Example:
        >>> Answer("Oslo", variable="v9").text
        'Oslo'
    """

    text: str
    variable: str | None = None


@runtime_checkable
class MemorySystem(Protocol):
    """A memory system that memtune can build, question and re-prompt.

    `build` and `answer` record their operations in the current trace (`tracing.operation`) and keep no state between
    calls: equal arguments give equal requests. They may be `async def`, as any method. They call models through the
    given access, or with their own client; caching and budgets do not cover the calls of such a client
    (docs/extending.md). A system may also have a `name`, a `version` and `settings` (`description.Description`).

    Example:
        >>> from tracing.systems.suite.notebook import Notebook
        >>> isinstance(Notebook(), MemorySystem)
        True
    """

    @property
    def prompts(self) -> Mapping[str, PromptSpec]:
        """The texts that can be tuned, by name."""

    @property
    def operations(self) -> Sequence[OperationSpec]:
        """What it records, in pipeline order; the answer comes last."""

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Read the conversation into a new memory. Model errors propagate: a partial memory is never returned."""

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer one question from `memory` without changing it."""


@runtime_checkable
class ChecksItself(Protocol):
    """A system that needs something installed or set up.

    Example:
        >>> class MyMemory:
        ...     def require_library(self):
        ...         raise ConfigError("my-memory needs mylib; pip install mylib")
        >>> isinstance(MyMemory(), ChecksItself)
        True
    """

    def require_library(self) -> None:
        """Return if everything it needs is there.

        Raises:
            ConfigError: something is missing; the message names the remedy.
        """


@runtime_checkable
class HasCaveats(Protocol):
    """A system whose results must be read with care.

    Example:
        >>> class MyMemory:
        ...     def caveats(self, *, embedded):
        ...         return ["It answers from the latest session only."]
        >>> isinstance(MyMemory(), HasCaveats)
        True
    """

    def caveats(self, *, embedded: bool) -> Sequence[str]:
        """Caveats about its results, one sentence each; `embedded`: whether the task model is embedded."""


@runtime_checkable
class HasRanges(Protocol):
    """A system that says which values of its settings are worth trying: `search.settings: auto`.

    Example:
        >>> class MyMemory:
        ...     ranges = {"top_k": (2, 4, 8)}
        >>> isinstance(MyMemory(), HasRanges)
        True
    """

    ranges: Mapping[str, Sequence[bool | int | float | str]]
    """Name of a setting → values, those of which the most is to be expected."""


@runtime_checkable
class BuildsStepwise(Protocol):
    """Questions between sessions: the memory is built once, and kept as it was at each of them.

    Without it, the sessions up to each such question are built again, on cached replies.

    Example:
        >>> class MyMemory:
        ...     def build_stepwise(self, stretches, candidate, access):
        ...         ids = []
        ...         for sessions in stretches:
        ...             ids += [session.id for session in sessions]
        ...             yield Memory({"sessions": list(ids)})
        ...     def build(self, conversation, candidate, access):
        ...         *_, memory = self.build_stepwise([conversation.sessions], candidate, access)
        ...         return memory
        >>> sessions = [DialogueSession(id=name, turns=()) for name in ("D1", "D2")]
        >>> [memory.state["sessions"] for memory in MyMemory().build_stepwise([sessions[:1], sessions[1:]], {}, None)]
        [['D1'], ['D1', 'D2']]
    """

    def build_stepwise(
        self, stretches: Sequence[Sequence[DialogueSession]], candidate: Candidate, access: ModelAccess
    ) -> Iterator[Memory]:
        """Read stretches of sessions into a new memory, and give it as it is after each of them."""


@runtime_checkable
class BuildsFromFacts(Protocol):
    """The ladder's rung after extraction.

    Example:
        >>> class MyMemory:
        ...     def build_from_facts(self, sessions, candidate, access):
        ...         return Memory({"facts": [fact for facts in sessions for fact in facts]})
        >>> MyMemory().build_from_facts([["Mara lives in Oslo."], ["Mara sails."]], {}, None).state
        {'facts': ['Mara lives in Oslo.', 'Mara sails.']}
    """

    def build_from_facts(self, sessions: Sequence[Sequence[str]], candidate: Candidate, access: ModelAccess) -> Memory:
        """Store gold facts session by session as if extraction had found them."""


@runtime_checkable
class HoldsEntries(Protocol):
    """The ladder's rung after storing.

    Example:
        >>> class MyMemory:
        ...     def with_entries(self, texts, access):
        ...         return Memory({"facts": list(texts)})
        >>> MyMemory().with_entries(["Mara lives in Oslo."], None).state
        {'facts': ['Mara lives in Oslo.']}
    """

    def with_entries(self, texts: Sequence[str], access: ModelAccess) -> Memory:
        """A memory that holds exactly these entries."""


@runtime_checkable
class AnswersFromContext(Protocol):
    """The ladder's rung after retrieval.

    Example:
        >>> class MyMemory:
        ...     def answer_from(self, context, question, candidate, access):
        ...         return Answer(context[0].split()[-1])
        >>> isinstance(MyMemory(), AnswersFromContext)
        True
    """

    def answer_from(
        self, context: Sequence[str], question: Question, candidate: Candidate, access: ModelAccess
    ) -> Answer:
        """Answer from a given context instead of retrieval."""


@runtime_checkable
class RerunsOperations(Protocol):
    """Local objectives: a prompt is measured on the recorded inputs of its operation, one call each.

    A system needs it for operations whose request cannot be asked again from a trace, as where they make several calls.

    Example:
        >>> class MyMemory:
        ...     def rerun(self, prompt, parts, candidate, access):
        ...         self.reply(noted_again(parts["notes"]), candidate, access)
        >>> isinstance(MyMemory(), RerunsOperations)
        True
    """

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute the prompt's operation once and record it, as `build` or `answer` would with these inputs.

        Args:
            prompt: name of the prompt that steers the operation.
            parts: placeholder → the recorded inputs that fill it.
            candidate: a text for each prompt.
            access: the models.
        """
