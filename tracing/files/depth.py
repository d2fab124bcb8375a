"""How deep JSON may be nested: whoever walks through a value later has a stack that ends."""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 200
"""Levels of nesting that a document may have. The recorder writes no more than 100 in a value."""
DEEPEST_LINE = DEEPEST + 50
"""Levels that a line of a trace may have: what was read from a document is some levels deeper in it."""

_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


def is_too_deep(content: bytes, deepest: int = DEEPEST) -> bool:
    """Whether a JSON text has more levels of brackets, in one pass that ends when that is certain."""
    if content.count(b"[") + content.count(b"{") <= deepest:
        return False
    depth = 0
    for bracket in _BRACKET.finditer(_TEXT.sub(b"", content)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > deepest:
            return True
    return False


def loads(text: str, deepest: int = DEEPEST) -> Any:
    """The value of a JSON text. Raises ValueError: it is none, or has more levels."""
    if is_too_deep(text.encode("utf-8", "surrogatepass"), deepest):
        raise ValueError(f"nested more than {deepest} levels deep")
    return json.loads(text)


def structured(value: Any, deepest: int = DEEPEST) -> Any:
    """The value of a text that is JSON, as tools write arguments, results and messages; anything else as it is."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            return loads(value, deepest)
        except (ValueError, RecursionError):
            return value
    return value
