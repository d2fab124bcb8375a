"""The steps of a memory system on a conversation: build, answer, and one operation again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from optimizer.evaluation.memories import Snapshot, Stage
from tracing.errors import MemorySystemError, ModelError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.booking import exchanges_recorded
from tracing.recording.processes import Branch
from tracing.recording.recorder import Recorder
from tracing.recording.trace_context import session, trace, whole_session
from tracing.systems.calls import answer_question, build_memory, build_stepwise, builds_stepwise, rerun_operation
from tracing.systems.conversations import Conversation, Question
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, Memory, MemorySystem, RerunsOperations

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess
    from tracing.llm.accounting.meter import Watch


_LASTING = ("type", "name", "kind", "value", "inputs", "outputs", "previous", "session", "parent")
"""Of a record, what is the same whenever a system does the same."""


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


@dataclass(frozen=True, slots=True)
class SystemSteps:
    """Runs the steps of one memory system; thread-safe. Its questions run in the threads of the access.

    All methods raise `ModelError` where a call failed, even if the system hides it, and `BudgetExceededError`.
    """

    system: MemorySystem

    def build(self, access: ModelAccess, conversation: Conversation, candidate: Candidate) -> Snapshot:
        """The memory that the system makes of a conversation, by stretches, with the trace of its build."""
        stretches = conversation.stretches()
        if len(stretches) > 1 and builds_stepwise(self.system):
            stages: list[Stage] = []
            ids: set[str | None] = set()
            with self._recorded("b") as recorder, _whole(access) as watch:
                for memory in build_stepwise(self.system, stretches, candidate, access):
                    records = [record for record in recorder.records() if record.get("id") not in ids]
                    ids.update(record.get("id") for record in records)
                    stages.append(Stage(memory, records))
            return Snapshot.read(Snapshot(stages, watch.calls + watch.cached).as_json())
        stages, snapshot = [], Snapshot((), 0)
        for until in conversation.parts():
            with self._recorded("b") as recorder, _whole(access) as watch:
                memory = build_memory(self.system, until, candidate, access)
            stages.append(Stage(memory, _later(recorder.records(), snapshot.records)))
            snapshot = Snapshot(stages, watch.calls + watch.cached)
        return snapshot

    def answer(
        self,
        access: ModelAccess,
        conversation: Conversation,
        candidate: Candidate,
        snapshot: Snapshot,
        path: Path | None = None,
    ) -> ConversationAnswers:
        """Ask all questions of a conversation, each at its place; `path` receives the trace."""
        with access.watch() as watch, self._recorded("a", path) as recorder:
            answers: dict[str, Answer] = {}
            for stretch, stage in zip(conversation.stretches(), snapshot.stages, strict=True):
                recorder.adopt(stage.records)
                variables = list(recorder.graph.variables.values())
                branches = [Branch(recorder, variables) for _ in stretch.questions]

                def ask(branch_and_question: tuple[Branch, Question], memory: Memory = stage.memory) -> Answer:
                    branch, question = branch_and_question
                    return branch.run(self._answer, access, candidate, memory, question)

                pairs = list(zip(branches, stretch.questions, strict=True))
                for (branch, question), answer in zip(pairs, access.threads.map(ask, pairs), strict=True):
                    branch.join()
                    answers[question.id] = answer
        in_order = [answers[question.id] for question in conversation.questions]
        return ConversationAnswers(in_order, recorder.graph, watch.calls + watch.cached)

    def rerun(self, access: ModelAccess, prompt: str, parts: Parts, candidate: Candidate, name: str) -> ExecutionGraph:
        """Execute one operation on recorded inputs (`RerunsOperations.rerun`), in a session called `name`."""
        with access.watch() as watch, trace(prefix="l") as recorder, session(name):
            rerun_operation(cast("RerunsOperations", self.system), prompt, parts, candidate, access)
        if watch.failures:
            raise ModelError(watch.failures[0])
        return recorder.graph

    @contextlib.contextmanager
    def _recorded(self, prefix: str, path: Path | None = None) -> Iterator[Recorder]:
        """A trace; if the system cannot rerun its operations, with what they ask, so that it can be asked again."""
        again = contextlib.nullcontext() if isinstance(self.system, RerunsOperations) else exchanges_recorded()
        with again, trace(path, prefix=prefix) as recorder:
            yield recorder

    def _answer(self, access: ModelAccess, candidate: Candidate, memory: Memory, question: Question) -> Answer:
        with access.watch() as watch:
            with whole_session(question.id):
                answer = answer_question(self.system, memory, question, candidate, access)
            if watch.failures:
                raise ModelError(watch.failures[0])
        return answer


@contextlib.contextmanager
def _whole(access: ModelAccess) -> Iterator[Watch]:
    """Watches the calls of a build; a failed one is raised, even if the system swallows it and returns what it has."""
    with access.watch() as watch:
        yield watch
    if watch.failures:
        raise ModelError(f"the memory is incomplete: {watch.failures[0]}")


def _later(records: list[dict[str, Any]], earlier: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a build recorded beyond the earlier one of fewer sessions, on the way of which it must have been."""
    by_id = {record.get("id"): record for record in records}
    for record in earlier:
        again = by_id.pop(record.get("id"), {})
        if any(again.get(key) != record.get(key) for key in _LASTING):
            raise MemorySystemError(
                "the memory system builds the first sessions of a conversation otherwise where more of them follow, so "
                "it cannot be asked between sessions; give it build_stepwise (docs/extending.md, optional methods), or "
                "leave after_session out of the questions"
            )
    return [*by_id.values()]
