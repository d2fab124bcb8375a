"""Where an exploration begins: the variables whose texts are nearest to a question, with what made and read them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from attribution.text.content import content_of, text_of

if TYPE_CHECKING:
    from attribution.agent.exploration import Exploration
    from tracing.graph.elements import Operation, Variable

MOST_TEXTS = 4
MOST_OF_A_TEXT = 2
"""Copies of one text that are shown, those recorded first; most of the others are contexts of answers."""

_MOST_NEIGHBOURS = 3
_LEFT_OUT = ("prompt",)


def starting_points(question: str, exploration: Exploration) -> list[str]:
    """The nearest variables, two lines for each: what it says, and what is next to it in the graph.

    Texts are ranked by the words that they share with the question, rare ones counting more (inverse document
    frequency), in proportion to all words of the text.
    """
    copies: dict[str, list[Variable]] = {}
    for variable in exploration.graph.variables.values():
        if variable.kind not in _LEFT_OUT and (text := text_of(variable.value)):
            copies.setdefault(text, []).append(variable)
    words = {text: content_of(text) for text in copies}
    frequency = Counter(word for text_words in words.values() for word in text_words)
    weight = {word: math.log(1 + len(words) / count) for word, count in frequency.items()}
    question_words = content_of(question)

    def nearness(text: str) -> float:
        shared = sum(weight[word] for word in words[text] & question_words)
        return shared * shared / sum(weight[word] for word in words[text]) if shared else 0.0

    near = sorted(((nearness(text), text) for text in copies), key=lambda scored: -scored[0])
    chosen = [copies[text][:MOST_OF_A_TEXT] for score, text in near[:MOST_TEXTS] if score > 0]
    return [line for group in chosen for variable in group for line in _lines(variable, exploration)]


def _lines(variable: Variable, exploration: Exploration) -> Iterator[str]:
    graph, handles = exploration.graph, exploration.handles
    yield exploration.line(variable)
    links = [
        _link("made by", graph.producers(variable.id), exploration),
        _link("read by", graph.consumers(variable.id), exploration),
    ]
    if variable.previous in graph.variables:
        links.append(f"version before: {handles.variable(variable.previous)}")
    later = [version for version in graph.versions(variable.id) if version.previous == variable.id]
    links += [f"version after: {handles.variable(version.id)} {version.kind}" for version in later]
    yield f"  {'; '.join(filter(None, links))}"


def _link(relation: str, operations: Sequence[Operation], exploration: Exploration) -> str:
    names = ", ".join(
        f"{exploration.handles.operation(operation.id)} {operation.name}" for operation in operations[:_MOST_NEIGHBOURS]
    )
    more = len(operations) - _MOST_NEIGHBOURS
    return f"{relation} {names}{f' and {more} more' if more > 0 else ''}" if operations else ""
