"""A recording as of a question: what was said and stored after it was answered does not exist for its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from attribution.cases import Case
from attribution.recordings import Recording
from tracing.graph.elements import Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Conversation, Turn
from tracing.systems.protocol import OperationSpec

_CONTENT = frozenset(("message", "fact", "memory_entry", "delete_marker"))


def graph_at(graph: ExecutionGraph, operations: Sequence[OperationSpec], case: Case) -> ExecutionGraph:
    """What was recorded by the time a case was answered; all of the graph if it does not show the answering."""
    answer = _answer_of(graph, operations, case)
    return graph if answer is None else graph.until(answer.id)


class History:
    """The pasts of one recording.

    Example:
        >>> from attribution.conformance import recorded
        >>> recording, cases = recorded()
        >>> [turn.id for turn in History(recording).at(cases[0]).conversation.turns()]
        ['D1:1', 'D1:2']
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._last: tuple[set[str], Conversation] | None = None
        """The turns that a moment lacks, and the conversation without them: the next case is often of the same one."""

    def at(self, case: Case) -> Recording:
        """The recording without what was said and stored after a case was answered; itself if nothing was."""
        whole = self.recording
        answer = _answer_of(whole.graph, whole.operations, case)
        if answer is None or self._ends_before(answer):
            return whole
        graph = whole.graph.until(answer.id)
        if self._content <= graph.variables.keys():
            return whole
        later = {turn for turn, messages in self._turns.items() if graph.variables.keys().isdisjoint(messages)}
        last = self._last
        if last is None or last[0] != later:
            last = self._last = later, _without(whole.conversation, later)
        return Recording(graph, last[1], whole.operations)

    def later_than(self, past: Recording) -> Sequence[Turn]:
        """The turns that a past does not have."""
        past_turns = {turn.id for turn in past.conversation.turns()}
        return [turn for turn in self.recording.conversation.turns() if turn.id not in past_turns]

    def _ends_before(self, answer: Operation) -> bool:
        """Whether all content is recorded before an answer and made by operations before it."""
        variables, operations = self._places
        first_output = min((variables[vid] for vid in answer.output_ids()), default=-1)
        return self._last_content < first_output and self._last_writing < operations[answer.id]

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[str, int]]:
        graph = self.recording.graph
        return {vid: at for at, vid in enumerate(graph.variables)}, {oid: at for at, oid in enumerate(graph.operations)}

    @cached_property
    def _content(self) -> set[str]:
        return {variable.id for variable in self.recording.graph.variables.values() if variable.kind in _CONTENT}

    @cached_property
    def _last_content(self) -> int:
        return max((self._places[0][vid] for vid in self._content), default=-1)

    @cached_property
    def _last_writing(self) -> int:
        makers = (
            operation
            for operation in self.recording.graph.operations.values()
            if not self._content.isdisjoint(operation.output_ids())
        )
        return max((self._places[1][maker.id] for maker in makers), default=-1)

    @cached_property
    def _turns(self) -> dict[str, list[str]]:
        """The variables of each turn that the graph has."""
        variables: dict[str, list[str]] = {}
        for message in self.recording.graph.find_variables(kind="message"):
            variables.setdefault(message.name, []).append(message.id)
        return variables


def as_known_in(case: Case, past: Recording) -> Case:
    """A case without the evidence and the near miss that a past does not have."""
    turns, question = {turn.id for turn in past.conversation.turns()}, case.question
    near = question.near_miss
    changes = {
        "evidence": tuple(turn for turn in question.evidence if turn in turns),
        "near_miss": near if near is not None and near.turn in turns else None,
    }
    return replace(case, question=question.model_copy(update=changes))


def _answer_of(graph: ExecutionGraph, operations: Sequence[OperationSpec], case: Case) -> Operation | None:
    """The operation that answered a case: what made its prediction, or the last answer in its question's session."""
    answering = {spec.name for spec in operations if spec.stage == "answer"}
    if case.prediction in graph.variables:
        makers = graph.producers(case.prediction)
        answer = next((maker for maker in makers if maker.name in answering), makers[-1] if makers else None)
        if answer is not None:
            return answer
    answers = [
        operation for name in answering for operation in graph.find_operations(name=name, session=case.question.id)
    ]
    return answers[-1] if answers else None


def _without(conversation: Conversation, later: set[str]) -> Conversation:
    if not later:
        return conversation
    sessions = [
        session.model_copy(update={"turns": tuple(turn for turn in session.turns if turn.id not in later)})
        for session in conversation.sessions
    ]
    changes = {
        "sessions": tuple(session for session in sessions if session.turns) or tuple(sessions[:1]),
        "facts": tuple(fact for fact in conversation.facts if fact.turn not in later),
    }
    return conversation.model_copy(update=changes)
