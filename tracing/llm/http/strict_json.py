"""JSON from models and endpoints, read so that bad input is refused and does no other harm."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from tracing.errors import MalformedReplyError

DEEPEST = 64
"""Most levels of nested lists and objects: more than any reply needs, and far below what crashes an interpreter."""

_MOST_STRAY_BRACES = 1000
"""After so many braces that begin no object, a text counts as having none: each costs a pass over the text."""

_TOO_DEEP = f"it is nested more than {DEEPEST} levels deep"


def strict_json(text: str | bytes, *, line_breaks: bool = False) -> Any:
    """The value of a JSON text.

    Args:
        line_breaks: whether strings may hold raw line breaks and other control characters, which JSON forbids.

    Raises:
        MalformedReplyError: it is not JSON, contains a number that JSON does not have (NaN, Infinity), or is nested
            more than `DEEPEST` levels deep. The message says which.
    """
    try:
        value = json.loads(text, strict=not line_breaks, parse_constant=_refuse)
    except RecursionError:
        raise MalformedReplyError(_TOO_DEEP) from None
    except ValueError as error:
        raise MalformedReplyError(f"it is not JSON ({error})") from None
    _check_depth(value)
    return value


def last_object(text: str) -> dict[str, Any] | None:
    """The last JSON object in a text that is not inside another; None if there is none.

    A model's reasoning before it may contain braces, and even an object that the model then rejects.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse)
    last: dict[str, Any] | None = None
    attempts_left = _MOST_STRAY_BRACES
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
            _check_depth(value)
        except (RecursionError, MalformedReplyError):
            # The braces that follow are nested as deep.
            return None
        except ValueError:
            attempts_left -= 1
            if not attempts_left:
                return None
            end = at + 1
        else:
            last = value
        at = text.find("{", end)
    return last


def _refuse(constant: str) -> NoReturn:
    raise MalformedReplyError(f"it contains {constant}, which is not a JSON number")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for outer in level:
            items = outer.values() if type(outer) is dict else outer if type(outer) is list else ()
            # Nearly all lists contain numbers or texts only; this makes them cheap.
            if not _CONTAINERS.isdisjoint(map(type, items)):
                inside += [item for item in items if type(item) in _CONTAINERS]
        if not inside:
            return
        level = inside
    raise MalformedReplyError(_TOO_DEEP)


_CONTAINERS = frozenset({list, dict})
