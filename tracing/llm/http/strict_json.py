"""JSON from models and endpoints, read so that bad input is refused and does no other harm."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from tracing.errors import MalformedReplyError

DEEPEST = 64
"""Most levels of nested lists and objects: more than any reply needs, and far below what crashes an interpreter."""

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
        value = json.loads(text, strict=not line_breaks, parse_constant=refuse_constant)
    except RecursionError:
        raise MalformedReplyError(_TOO_DEEP) from None
    except ValueError as error:
        raise MalformedReplyError(f"it is not JSON ({error})") from None
    check_depth(value)
    return value


def refuse_constant(constant: str) -> NoReturn:
    """Raise a `MalformedReplyError` for a number that JSON does not have."""
    raise MalformedReplyError(f"it contains {constant}, which is not a JSON number")


def check_depth(value: Any) -> None:
    """Raise a `MalformedReplyError` for a value that is nested more than `DEEPEST` levels deep."""
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
