"""Questions about a recorded memory that the graph itself answers: the truth is read from its links, not from texts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from attribution.text.content import text_of
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph

ENTRY, FACT, MESSAGE, QUERY = "memory_entry", "fact", "message", "query"

_LONGEST = 160
_FEWEST = 12


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One use of a tool on what the question names or an earlier step showed.

    Attributes:
        tool: its name.
        target: id of a variable or an operation, or a kind of variables for `search`.
        text: what else the tool is given.
    """

    tool: str
    target: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Planted:
    """A question with its answer.

    Attributes:
        kind: what it asks for, a key of `KINDS`.
        graph: what it is asked about.
        text: the question.
        answers: ids of the variables or operations of which each is a right answer.
        recipe: steps of which the last shows an answer.
    """

    kind: str
    graph: ExecutionGraph
    text: str
    answers: frozenset[str]
    recipe: tuple[ToolUse, ...]


def planted(graphs: Sequence[ExecutionGraph], count: int, seed: int) -> list[Planted]:
    """Up to `count` questions, the kinds in turn, drawn from all the graphs."""
    draw = random.Random(seed)  # noqa: S311 (the choice of questions)
    queues: list[list[Planted]] = []
    for kind, make in KINDS.items():
        found = [
            Planted(kind, graph, text, frozenset(answers), tuple(recipe))
            for graph in graphs
            for text, answers, recipe in make(graph)
            if answers
        ]
        draw.shuffle(found)
        queues.append(found)
    return [one for one in chain.from_iterable(zip_longest(*queues)) if one is not None][:count]


_Made = Iterator[tuple[str, set[str], list[ToolUse]]]


def _maker(graph: ExecutionGraph) -> _Made:
    for entry, text in _told_once(graph, ENTRY):
        answers = {one.id for one in graph.producers(entry.id)}
        yield (
            f"Which operation made the memory entry “{text}”?",
            answers,
            [_found(entry, text), ToolUse("producers", entry.id)],
        )


def _source(graph: ExecutionGraph, kind: str, read: str, asked: str) -> _Made:
    """What of a kind the makers of each variable of another kind read."""
    for variable, text in _told_once(graph, kind):
        makers = graph.producers(variable.id)
        answers = {vid for maker in makers for vid in maker.input_ids() if graph.variables[vid].kind == read}
        looks = (ToolUse("operation", one.id) for one in makers)
        yield asked.format(text), answers, [_found(variable, text), ToolUse("producers", variable.id), *looks]


def _cause(graph: ExecutionGraph) -> _Made:
    return _source(graph, ENTRY, FACT, "Which extracted fact became the memory entry “{}”?")


def _message(graph: ExecutionGraph) -> _Made:
    return _source(graph, FACT, MESSAGE, "Name one of the messages that were read when the fact “{}” was extracted.")


def _before(graph: ExecutionGraph) -> _Made:
    for entry, text in _told_once(graph, ENTRY):
        if entry.previous in graph.variables:
            recipe = [_found(entry, text), ToolUse("versions", entry.id)]
            yield f"Which version of the memory entry came just before it said “{text}”?", {entry.previous}, recipe


def _deleted(graph: ExecutionGraph) -> _Made:
    for entry, text in _told_once(graph, ENTRY):
        for later in graph.versions(entry.id):
            if later.previous == entry.id and later.kind == "delete_marker":
                answers = {one.id for one in graph.producers(later.id)}
                recipe = [_found(entry, text), ToolUse("versions", entry.id), ToolUse("producers", later.id)]
                yield f"Which operation deleted the memory entry “{text}”?", answers, recipe


def _reader(graph: ExecutionGraph) -> _Made:
    for message, text in _told_once(graph, MESSAGE):
        answers = {one.id for one in graph.consumers(message.id)}
        yield (
            f"Which operation read the message “{text}”?",
            answers,
            [_found(message, text), ToolUse("consumers", message.id)],
        )


def _retrieval(graph: ExecutionGraph) -> _Made:
    for query, text in _told_once(graph, QUERY):
        for retrieval in _retrievals(graph, query):
            recipe = [_found(query, text), ToolUse("consumers", query.id)]
            yield f"Which operation searched the memory for the question “{text}”?", {retrieval.id}, recipe


def _shown(graph: ExecutionGraph) -> _Made:
    for query, text in _told_once(graph, QUERY):
        for retrieval in _retrievals(graph, query):
            recipe = [_found(query, text), ToolUse("consumers", query.id), ToolUse("operation", retrieval.id)]
            answers = set(retrieval.output_ids())
            yield f"Name one of the texts that were retrieved for the question “{text}”.", answers, recipe


def _reply(graph: ExecutionGraph) -> _Made:
    for query, text in _told_once(graph, QUERY):
        for one in graph.consumers(query.id):
            answers = {vid for vid in one.output_ids() if graph.variables[vid].kind == "prediction"}
            recipe = [_found(query, text), ToolUse("consumers", query.id), ToolUse("operation", one.id)]
            yield f"Which variable is the reply to the question “{text}”?", answers, recipe


KINDS: Mapping[str, Callable[[ExecutionGraph], _Made]] = {
    "maker": _maker,
    "cause": _cause,
    "version before": _before,
    "deletion": _deleted,
    "reader": _reader,
    "source": _message,
    "retrieval": _retrieval,
    "retrieved": _shown,
    "reply": _reply,
}
"""What is asked for → the questions of that kind that a graph answers."""


def _told_once(graph: ExecutionGraph, kind: str) -> Iterator[tuple[Variable, str]]:
    """The variables of a kind with their texts, where no other of the kind says the same or more."""
    texts: dict[str, list[Variable]] = {}
    for variable in graph.find_variables(kind=kind):
        texts.setdefault(" ".join(text_of(variable.value).split()), []).append(variable)
    for text, having in texts.items():
        within = sum(text in other for other in texts)
        if len(having) == 1 and within == 1 and _FEWEST <= len(text) <= _LONGEST:
            yield having[0], text


def _retrievals(graph: ExecutionGraph, query: Variable) -> list[Operation]:
    return [
        one for one in graph.consumers(query.id) if any(graph.variables[v].kind == "context" for v in one.output_ids())
    ]


def _found(variable: Variable, text: str) -> ToolUse:
    return ToolUse("search", variable.kind, text)
