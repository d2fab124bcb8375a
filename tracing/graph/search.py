"""Finding variables and operations by what they say.

A regular expression comes from a person and may be one that takes for ever on an unlucky text. Therefore an expression
is at most 500 characters long and holds at most three repetitions of more than four times, and inside of them no
repetition, option or choice (`(a+)+`, `(ab?)*`, `(a|ab)*`); and it is tried line by line, as grep does, on pieces of at
most 2,000 characters that overlap by half, so that it finds what is up to 1,000 characters long. What remains is at
worst slow, and Ctrl-C ends it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from tracing.errors import TraceError
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.filters import Filter

LONGEST_EXPRESSION = 500
MOST_UNBOUNDED = 3
FEW = 4
PIECE = 2000
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
        regex: `text` is a regular expression of Python's `re`, in which capital letters matter; `(?i)` changes that.
        kind: of the variable or operation.
        session: name or id of its session.
        since, until: epoch seconds between which it was there: an operation ran; a variable was made by an operation
            that ran, or, where it came from outside, was read by one.

    Raises:
        TraceError: the expression is malformed or one that may take for ever; see the module.
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
        found = _match(variable, texts | _attributes(variable), "value", find)
        if found is not None and _was_there(graph, variable, timed):
            yield found
    for operation in list(graph.operations.values()):
        if only.admits(operation, graph.sessions):
            texts = {"name": operation.name, "error": operation.error or ""}
            found = _match(operation, texts | _attributes(operation), "error", find)
            if found is not None:
                yield found


def _attributes(item: Variable | Operation) -> dict[str, str]:
    return {key: shown_text(value) for key, value in item.attributes.items() if key not in ("name", "value", "error")}


def _match(item: Variable | Operation, texts: dict[str, str], shown: str, find: _Find | None) -> Match | None:
    if find is None:
        return Match(item, "", _one_line(texts[shown][: 2 * _AROUND]))
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
    expression = _safe(text)

    def find(within: str) -> tuple[int, int] | None:
        start = 0
        for line in within.split("\n"):
            for offset in range(0, max(1, len(line) - PIECE // 2), PIECE // 2):
                hit = expression.search(line, offset, min(len(line), offset + PIECE))
                if hit is not None:
                    return start + hit.start(), start + hit.end()
            start += len(line) + 1
        return None

    return find


def _safe(text: str) -> re.Pattern[str]:
    if len(text) > LONGEST_EXPRESSION:
        raise TraceError(f"the expression has {len(text)} characters; shorten it to {LONGEST_EXPRESSION}")
    try:
        expression = re.compile(text)
        unbounded = _unbounded(parser.parse(text), inside=False)
    except (re.error, OverflowError, RecursionError) as error:
        raise TraceError(
            f"{text!r} is no regular expression: {error}; leave out --regex to search for it as it is"
        ) from None
    if unbounded > MOST_UNBOUNDED:
        raise TraceError(
            f"{text!r} has {unbounded} unbounded repetitions and may take for ever; use at most {MOST_UNBOUNDED}"
        )
    return expression


def _unbounded(parsed: Any, inside: bool) -> int:
    """How many repetitions without a small bound a parsed expression holds.

    Raises:
        TraceError: what one of them repeats can match a text in several ways.
    """
    count = 0
    for code, argument in parsed:
        below = inside
        varied = code is codes.BRANCH
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, most, _ = argument
            varied = least != most
            if int(most) > FEW:
                count, below = count + 1, True
        if varied and inside:
            raise TraceError(
                "the expression repeats what is itself a repetition, optional or a choice, which may take for ever; "
                "say it without, such as a+ for (a+)+"
            )
        for part in _parts(argument):
            count += _unbounded(part, below)
    return count


def _parts(argument: Any) -> Iterator[Any]:
    """The expressions within a piece of a parsed expression."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for one in argument:
            yield from _parts(one)
