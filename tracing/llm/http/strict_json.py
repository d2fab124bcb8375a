"""JSON from models and endpoints, read so that nothing they send can do worse than be refused."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from tracing.errors import MalformedReplyError

DEEPEST = 64
"""Most levels of lists and objects in each other: more than any reply needs, and far from what ends an interpreter."""

_MOST_STRAY_BRACES = 1000
"""Braces that begin no object, after which a text is taken to hold none: each costs a look at all of it."""

_TOO_DEEP = f"it is nested more than {DEEPEST} levels deep"


def strict_json(text: str | bytes, *, line_breaks: bool = False) -> Any:
    """The value that a JSON text stands for.

    Args:
        line_breaks: whether strings may hold raw line breaks and other control characters, which JSON forbids.

    Raises:
        MalformedReplyError: it is no JSON, holds a number that JSON does not have (NaN, Infinity), or is nested more
            than `DEEPEST` levels deep. The message says which.
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
    """The last JSON object in a text that is in no other; None if there is none.

    What a model thinks aloud before it may hold braces, and even an object that it decides against.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse)
    found: dict[str, Any] | None = None
    left = _MOST_STRAY_BRACES
    at = text.find("{")
    while at >= 0:
        try:
            said, end = decoder.raw_decode(text, at)
            _check_depth(said)
        except (RecursionError, MalformedReplyError):
            # Each of the braces that follow would lead as deep.
            return None
        except ValueError:
            left -= 1
            if not left:
                return None
            end = at + 1
        else:
            found = said
        at = text.find("{", end)
    return found


def _refuse(constant: str) -> NoReturn:
    raise MalformedReplyError(f"it holds {constant}, which is no number in JSON")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for outer in level:
            items = outer.values() if type(outer) is dict else outer if type(outer) is list else ()
            # Nearly all lists are of numbers or texts; this way they cost next to nothing.
            if not _CONTAINERS.isdisjoint(map(type, items)):
                inside += [item for item in items if type(item) in _CONTAINERS]
        if not inside:
            return
        level = inside
    raise MalformedReplyError(_TOO_DEEP)


_CONTAINERS = frozenset({list, dict})
