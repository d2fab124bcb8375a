"""Finding variables and operations by what they say.

Regular expressions, which a person or a model gives, are tried within limits of time. Python's own `re` cannot be
stopped, and some expressions (`(a+)+$`) take for ever on an unlucky text. The `regex` package takes the same
expressions and can be stopped; it is loaded when the first expression is compiled. A text is tried line by line, as
grep does, in pieces of at most 2,000 characters that overlap by half, so that a long line takes no more time than its
length is worth; a match is up to 1,000 characters long, sometimes more.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tracing.errors import TraceError
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.operation_filter import Filter

LONGEST_EXPRESSION = 500
"""Characters of an expression at most."""

PIECE = 2000
SECONDS_A_TEXT, SECONDS = 1.0, 60.0
"""Processor time that an expression may take on one text, and on all texts together."""


class Expression:
    """A compiled regular expression, in the syntax of Python's `re`. Capital letters matter; `(?i)` changes that.

    Raises:
        TraceError: it is malformed or too long, or the package `regex` is not installed.
    """

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_EXPRESSION:
            raise TraceError(f"the expression has {len(text)} characters; shorten it to {LONGEST_EXPRESSION}")
        try:
            import regex
        except ImportError:
            raise TraceError(
                "a regular expression needs the package regex: pip install regex; "
                "leave out --regex to search for the text as it is"
            ) from None
        try:
            self._compiled: Any = regex.compile(text)
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            raise TraceError(
                f"{text!r} is not a regular expression: {error}; leave out --regex to search for it as it is"
            ) from None
        self._text, self._left = text, SECONDS

    def spans(self, text: str, most: int) -> list[tuple[int, int]]:
        """First and last position of the first matches in `text`, at most so many, none within another.

        Raises:
            TraceError: they took too long to find.
        """
        spans: list[tuple[int, int]] = []
        begun, allowed = time.thread_time(), min(SECONDS_A_TEXT, self._left)
        try:
            for line, start, first, last in _pieces(text):
                remaining = allowed - (time.thread_time() - begun)
                if remaining <= 0:
                    raise TimeoutError
                for hit in self._compiled.finditer(line, first, last, timeout=remaining):
                    if not spans or start + hit.start() >= spans[-1][1]:
                        spans.append((start + hit.start(), start + hit.end()))
                    if len(spans) == most:
                        return spans
        except TimeoutError:
            limit = f"{SECONDS_A_TEXT:g} s on one text" if allowed == SECONDS_A_TEXT else f"{SECONDS:g} s"
            raise TraceError(
                f"{self._text!r} takes more than {limit}; repeat less in it (a+ for (a+)+), or search in less"
            ) from None
        finally:
            self._left -= time.thread_time() - begun
        return spans


def _pieces(text: str) -> Iterator[tuple[str, int, int, int]]:
    """Each line of a text with where it starts, and the first and last position in it of a piece to try."""
    start = 0
    for line in text.split("\n"):
        for offset in range(0, max(1, len(line) - PIECE // 2), PIECE // 2):
            yield line, start, offset, min(len(line), offset + PIECE)
        start += len(line) + 1


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

    Example:
        >>> match = next(search(ExecutionGraph([Variable("v1", "D1:1", "message", "I moved to Oslo.")]), "oslo"))
        >>> match.item.name, match.place
        ('D1:1', 'value')
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
        TraceError: the expression is malformed, or takes too long on a text.

    Example:
        >>> with trace() as recorder:
        ...     message = variable("I moved to Oslo.", name="D1:1", kind="message")
        >>> [match.excerpt for match in search(recorder.graph, "oslo", kind="message")]
        ['I moved to Oslo.']
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
