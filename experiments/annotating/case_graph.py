"""The part of a graph that one wrong answer is about: from its evidence forward, and from what was answered back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import get_args

from attribution.cases import Case
from attribution.history import graph_at
from attribution.recordings import Recording
from attribution.survival.flow import Answering, ContentFlow
from attribution.text.content import text_of
from tracing.graph.elements import Operation
from tracing.systems.protocol import Stage

MOST_IN_COLUMN = 12
_STAGES: tuple[Stage, ...] = get_args(Stage)
_TITLES = ("messages", "extraction", "extracted", "update", "stored", "retrieval", "context", "answer", "reply")
"""Of the operations of each stage, and of what they make."""
_STEPS = 3
"""From a message to a stored entry: extraction, decision, update."""
_UNSHOWN = frozenset(("prompt", "query"))
_MOST_SOURCES = 40
"""Inputs of a retrieval beyond which it is taken to have read the whole memory."""


@dataclass(frozen=True, slots=True)
class CaseGraph:
    """Columns of ids from the messages on the left to the reply on the right, with edges between neighbours.

    Variables and operations take turns: messages, extractions, facts, updates, entries and so on. `left_out` is how
    many each column has beyond those listed.
    """

    titles: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[str, str], ...]
    left_out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A message that bears on a case: annotated as evidence (gold), or a source of what the answer was given (used)."""

    id: str
    gold: bool
    used: bool


class CaseGraphs:
    """Looks at a case in its recording, as it was when the case was answered."""

    def __init__(self, recording: Recording, case: Case) -> None:
        self._case = case
        self._graph = graph_at(recording.graph, recording.operations, case)
        self._flow = ContentFlow(self._graph, recording.operations)
        self._gold = dict.fromkeys(
            message.id for turn in case.question.evidence for message in self._flow.messages(turn)[:1]
        )
        self._answering = self._flow.answering(case.question.id, case.prediction)

    def evidence(self) -> list[Evidence]:
        """The annotated messages, then those that what was answered with comes from, in the order recorded."""
        used = self._source_messages(self._answering) if self._answering is not None else {}
        return [Evidence(vid, vid in self._gold, vid in used) for vid in self._gold | used]

    def around(self, first: Iterable[str] = ()) -> CaseGraph:
        """The case's part of the graph; `first` are elements to show by all means, such as those blamed."""
        case, answering = self._case, self._answering
        nearby = self._forward()
        required = dict.fromkeys([*self._gold, *(element_id for element_id in first if self._is_here(element_id))])
        if answering is not None:
            nearby |= self._backward(answering)
            operations = [*(retrieval.id for retrieval in answering.retrievals), answering.answer.id]
            required |= dict.fromkeys([*operations, *answering.answer.output_ids()])
        if case.prediction in self._graph.variables:
            required[case.prediction or ""] = None
        return self._layout(required | nearby)

    def _is_here(self, element_id: str) -> bool:
        return element_id in self._graph.variables or element_id in self._graph.operations

    def _forward(self) -> dict[str, None]:
        def extracting(vid: str) -> Iterable[Operation]:
            return (o for o in self._graph.consumers(vid) if self._flow.stage(o) in ("extract", "update"))

        return self._reachable(self._gold, extracting, lambda operation: self._content(operation.output_ids()))

    def _backward(self, answering: Answering) -> dict[str, None]:
        entries = self._entries(answering)
        start = [*(piece.id for piece in answering.context), *entries]
        return self._reachable(start, self._graph.producers, lambda operation: self._sources(operation, bool(entries)))

    def _reachable(
        self,
        start: Iterable[str],
        operations_at: Callable[[str], Iterable[Operation]],
        beyond: Callable[[Operation], Iterable[str]],
    ) -> dict[str, None]:
        """Variables and operations on the way from some variables: the operations at each, and what is beyond these."""
        reachable = dict.fromkeys(start)
        frontier = list(reachable)
        for _ in range(_STEPS):
            reached: dict[str, None] = {}
            for operation in (operation for vid in frontier for operation in operations_at(vid)):
                reachable[operation.id] = None
                reached |= dict.fromkeys(beyond(operation))
            frontier = [vid for vid in reached if vid not in reachable]
            reachable |= reached
        return reachable

    def _sources(self, operation: Operation, entries_known: bool) -> list[str]:
        """What an operation worked on: an update not on the entries that it was only compared with."""
        stage, inputs = self._flow.stage(operation), self._content(operation.input_ids())
        if stage == "retrieve" and (entries_known or len(inputs) > _MOST_SOURCES):
            return []
        if stage == "extract":
            return []  # all the messages that it read; those that are evidence are shown
        return [vid for vid in inputs if stage != "update" or self._graph.variables[vid].kind != "memory_entry"]

    def _content(self, vids: Iterable[str]) -> list[str]:
        return [vid for vid in vids if self._graph.variables[vid].kind not in _UNSHOWN]

    def _entries(self, answering: Answering) -> list[str]:
        """The entries that the answer was shown: as the trace says, or else those whose text the context has."""
        entry_ids: dict[str, None] = {}
        for piece in answering.context:
            entry = self._flow.entry_of(piece)
            if entry is not None:
                entry_ids[entry.id] = None
                continue
            context = text_of(piece.value)
            candidates = (
                vid for reader in self._graph.producers(piece.id) for vid in self._content(reader.input_ids())
            )
            entry_ids |= {vid: None for vid in candidates if len(text := self._text(vid)) > 0 and text in context}
        return list(entry_ids)

    def _text(self, vid: str) -> str:
        return text_of(self._graph.variables[vid].value)

    def _source_messages(self, answering: Answering) -> dict[str, None]:
        """The messages that pieces of context come from, by the entries that they show."""
        sources = self._entries(answering) or [piece.id for piece in answering.context]
        origin = self._graph.backward_slice(*sources, depth=_STEPS + 1) if sources else None
        variables = {} if origin is None else origin.variables
        return {vid: None for vid, variable in variables.items() if variable.kind == "message"}

    def _layout(self, element_ids: dict[str, None]) -> CaseGraph:
        places = {element_id: self._column(element_id, element_ids) for element_id in element_ids}
        columns: list[list[str]] = [[] for _ in range(2 * len(_STAGES) + 1)]
        for element_id in element_ids:  # what is wanted by all means comes first
            columns[places[element_id]].append(element_id)
        listed = [tuple(column[:MOST_IN_COLUMN]) for column in columns]
        listed_ids = {element_id for column in listed for element_id in column}
        edges = dict.fromkeys(
            edge
            for oid in listed_ids
            if oid in self._graph.operations
            for edge in self._edges(self._graph.operations[oid])
            if listed_ids.issuperset(edge)
        )
        filled = [place for place, column in enumerate(columns) if column]
        left_out = (max(0, len(columns[place]) - MOST_IN_COLUMN) for place in filled)
        titles = tuple(_TITLES[place] for place in filled)
        return CaseGraph(titles, tuple(listed[place] for place in filled), tuple(edges), tuple(left_out))

    def _edges(self, operation: Operation) -> Iterable[tuple[str, str]]:
        yield from ((vid, operation.id) for vid in operation.input_ids())
        yield from ((operation.id, vid) for vid in operation.output_ids())

    def _column(self, element_id: str, element_ids: dict[str, None]) -> int:
        operation = self._graph.operations.get(element_id)
        if operation is not None:
            stage = self._flow.stage(operation)
            return 2 * _STAGES.index(stage) + 1 if stage is not None else len(_STAGES)
        if self._graph.variables[element_id].kind == "message":
            return 0
        makers = self._graph.producers(element_id)
        nearby = [maker for maker in makers if maker.id in element_ids] or makers
        if not nearby:  # it was there before: beside who reads it
            readers = (
                self._column(reader.id, element_ids)
                for reader in self._graph.consumers(element_id)
                if reader.id in element_ids
            )
            return min(readers, default=1) - 1
        return max(self._column(maker.id, element_ids) for maker in nearby) + 1
