"""Where a memory system runs: in the threads of this process, or elsewhere by an `Executor` of another kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from optimizer.evaluation.memories import Snapshot
from tracing.errors import ModelError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.recording.processes import Branch
from tracing.recording.trace_context import session, trace
from tracing.systems.calls import answer_question, build_memory, rerun_operation
from tracing.systems.conversations import Conversation, Question
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, MemorySystem, RerunsOperations

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess


@dataclass(frozen=True, slots=True)
class ConversationAnswers:
    """The answers to all questions of a conversation.

    Attributes:
        answers: in the order of the questions.
        graph: the build and all answers, as one execution graph.
        calls: model calls that the answers asked for, served from the cache or not.
    """

    answers: Sequence[Answer]
    graph: ExecutionGraph
    calls: int


class Executor(Protocol):
    """Runs the steps of one memory system; thread-safe. Every executor gives the same results, with the same ids.

    All calls to models pass through `access`: its cache, ledger and budget, and the watches open around the step.
    All methods raise `ModelError` where a call failed, even if the system hides it, and `BudgetExceededError`.
    """

    def build(self, access: ModelAccess, conversation: Conversation, candidate: Candidate) -> Snapshot:
        """The memory that the system makes of a conversation, with the trace of its build."""
        ...

    def answer(
        self,
        access: ModelAccess,
        conversation: Conversation,
        candidate: Candidate,
        snapshot: Snapshot,
        path: Path | None = None,
    ) -> ConversationAnswers:
        """Ask all questions of a conversation; `path` receives the trace."""
        ...

    def rerun(self, access: ModelAccess, prompt: str, parts: Parts, candidate: Candidate, name: str) -> ExecutionGraph:
        """Execute one operation on recorded inputs (`RerunsOperations.rerun`), in a session called `name`."""
        ...


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Runs a system in this process, its questions in the threads of the access."""

    system: MemorySystem

    def build(self, access: ModelAccess, conversation: Conversation, candidate: Candidate) -> Snapshot:
        """See `Executor`."""
        with trace(prefix="b") as recorder, access.watch() as watch:
            memory = build_memory(self.system, conversation, candidate, access)
        if watch.failures:
            # A system may swallow the error and return what it has: a partial memory is never kept.
            raise ModelError(f"the memory is incomplete: {watch.failures[0]}")
        return Snapshot(memory, recorder.records(), watch.calls + watch.cached)

    def answer(
        self,
        access: ModelAccess,
        conversation: Conversation,
        candidate: Candidate,
        snapshot: Snapshot,
        path: Path | None = None,
    ) -> ConversationAnswers:
        """See `Executor`."""
        with access.watch() as watch, trace(path, prefix="a") as recorder:
            recorder.adopt(snapshot.records)
            variables = list(recorder.graph.variables.values())
            branches = [Branch(recorder, variables) for _ in conversation.questions]

            def ask(branch_and_question: tuple[Branch, Question]) -> Answer:
                branch, question = branch_and_question
                return branch.run(self._answer, access, candidate, snapshot, question)

            pairs = list(zip(branches, conversation.questions, strict=True))
            answers = []
            for branch, answer in zip(branches, access.threads.map(ask, pairs), strict=True):
                branch.join()
                answers.append(answer)
        return ConversationAnswers(answers, recorder.graph, watch.calls + watch.cached)

    def rerun(self, access: ModelAccess, prompt: str, parts: Parts, candidate: Candidate, name: str) -> ExecutionGraph:
        """See `Executor`."""
        with access.watch() as watch, trace(prefix="l") as recorder, session(name):
            rerun_operation(cast("RerunsOperations", self.system), prompt, parts, candidate, access)
        if watch.failures:
            raise ModelError(watch.failures[0])
        return recorder.graph

    def _answer(self, access: ModelAccess, candidate: Candidate, snapshot: Snapshot, question: Question) -> Answer:
        with access.watch() as watch:
            with session(question.id):
                answer = answer_question(self.system, snapshot.memory, question, candidate, access)
            if watch.failures:
                raise ModelError(watch.failures[0])
        return answer
