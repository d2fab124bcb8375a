"""Finding variables and operations by what they say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.expressions import Expression
from tracing.graph.filters import Filter

_AROUND = 40

_encoder = json.JSONEncoder(ensure_ascii=False)
_Find = Callable[[str], tuple[int, int] | None]


@dataclass(frozen=True, slots=True)
class Match:
    """A variable or operation that a search found.

    Attributes:
        item: what was found.
        place: where in it: name, value, error or the name of an attribute; empty where no text was asked for.
        excerpt: the text around the first hit, on one line; the beginning of the value where no text was asked for.
    """

    item: Variable | Operation
    place: str
    excerpt: str


def search(
    graph: ExecutionGraph,
    text: str | None = None,
    *,
    regex: bool = False,
    kind: str | None = None,
    session: str | None = None,
    since: float | None = None,
    until: float | None = None,
) -> Iterator[Match]:
    """The variables, then the operations, that meet all conditions, each in the order recorded.

    Args:
        text: what a name, a value, an error or an attribute contains, in small letters or capital ones; None asks
            nothing. Values that are no text are searched in as JSON.
        regex: `text` is a regular expression in the syntax of Python's `re`, tried line by line; capital letters matter
            in it, and `(?i)` changes that.
        kind: of the variable or operation.
        session: name or id of its session.
        since, until: epoch seconds between which it was there: an operation ran; a variable was made by an operation
            that ran, or, where it came from outside, was read by one.

    Raises:
        TraceError: the expression is malformed, or takes too long on a text; see `expressions`.
    """
    return _matches(graph, _finder(text, regex), Filter(None, kind, session, since, until))


def shown_text(value: Any, longest: int | None = None) -> str:
    """A value as text: itself, or its JSON; of a longer one at least `longest` characters, without making the rest."""
    if isinstance(value, str):
        return value
    if longest is None or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    begun: list[str] = []
    length = 0
    for piece in _encoder.iterencode(value):
        begun.append(piece)
        length += len(piece)
        if length > longest:
            break
    return "".join(begun)


def _matches(graph: ExecutionGraph, find: _Find | None, only: Filter) -> Iterator[Match]:
    timed = Filter(since=only.since, until=only.until)
    for variable in graph.find_variables(kind=only.kind, session=only.session):
        texts = {"name": variable.name, "value": shown_text(variable.value)}
        match = _match(variable, texts | _attributes(variable), "value", find)
        if match is not None and _was_there(graph, variable, timed):
            yield match
    for operation in list(graph.operations.values()):
        if only.admits(operation, graph.sessions):
            texts = {"name": operation.name, "error": operation.error or ""}
            match = _match(operation, texts | _attributes(operation), "error", find)
            if match is not None:
                yield match


def _attributes(item: Variable | Operation) -> dict[str, str]:
    return {key: shown_text(value) for key, value in item.attributes.items() if key not in ("name", "value", "error")}


def _match(item: Variable | Operation, texts: dict[str, str], place_shown: str, find: _Find | None) -> Match | None:
    if find is None:
        return Match(item, "", _one_line(texts[place_shown][: 2 * _AROUND]))
    for place, text in texts.items():
        span = find(text)
        if span is not None:
            first, last = max(0, span[0] - _AROUND), min(len(text), max(span[1], span[0] + _AROUND) + _AROUND)
            excerpt = _one_line(text[first : min(last, first + 8 * _AROUND)])
            return Match(item, place, ("…" if first else "") + excerpt + ("…" if last < len(text) else ""))
    return None


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _was_there(graph: ExecutionGraph, variable: Variable, timed: Filter) -> bool:
    if timed.since is None and timed.until is None:
        return True
    operations = graph.producers(variable.id) or graph.consumers(variable.id)
    return any(timed.admits(operation, graph.sessions) for operation in operations)


def _finder(text: str | None, regex: bool) -> _Find | None:
    if text is None:
        return None
    if not regex:
        # Folding may lengthen a text (ß), so the expression finds the place.
        plain = re.compile(re.escape(text), re.IGNORECASE)
        return lambda within: hit.span() if (hit := plain.search(within)) else None
    expression = Expression(text)
    return lambda within: next(iter(expression.spans(within, 1)), None)
