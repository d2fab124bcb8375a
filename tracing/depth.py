"""How deep JSON may be nested: whoever walks through a value later has a stack that ends."""

from __future__ import annotations

import re

DEEPEST = 200
"""Levels of nesting that are read. The recorder writes no more than 100 in a value."""

_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


def is_too_deep(content: bytes) -> bool:
    """Whether a JSON text has more than `DEEPEST` levels of brackets, in one pass that ends when that is certain."""
    depth = 0
    for bracket in _BRACKET.finditer(_TEXT.sub(b"", content)):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > DEEPEST:
            return True
    return False
