"""The form in which a value is recorded: plain JSON, as it was at that moment."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

ATOMS = frozenset({str, int, float, bool, type(None)})
"""Types whose values are noted as their own snapshots; numbers that JSON does not have are replaced on settling."""

UNCHANGING = (str, bytes, int, float, complex, type(None))

_DEEPEST = 100
_LONGEST_INT_BITS = 4096
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def snapshot(value: Any) -> Any:
    """A JSON-compatible copy of `value` that later changes to it do not reach.

    Text, numbers, truth values and None stay; lists and tuples become lists; mappings with text keys become dicts.
    Anything else (also NaN, cycles and nesting beyond 100 levels) becomes `{"type": "module.Class", "repr": "…"}`,
    its repr without memory addresses, so that equal executions give equal records. Never raises.
    """
    return _copy(value, frozenset(), 0)


def has_identity(value: Any) -> bool:
    """False for values of which the interpreter keeps one copy for all, so that sharing it says nothing."""
    if type(value) is str:
        return len(value) > 1
    if value is None or isinstance(value, Enum):
        return False
    if isinstance(value, int):
        return not -5 <= value <= 256
    if isinstance(value, str | bytes):
        return len(value) > 1
    return not (isinstance(value, tuple | frozenset) and not value)


def _copy(value: Any, inside: frozenset[int], depth: int) -> Any:
    if type(value) is str or value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _LONGEST_INT_BITS else _described(value, hex(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _described(value)
    if id(value) in inside or depth >= _DEEPEST:
        return _described(value, "…")
    if isinstance(value, list | tuple):
        inner = inside | {id(value)}
        return [item if type(item) is str else _copy(item, inner, depth + 1) for item in list(value)]
    if isinstance(value, Mapping):
        return _copy_mapping(value, inside | {id(value)}, depth)
    if isinstance(value, set | frozenset):
        # The order of a set of texts differs from process to process.
        return _described(value, "{" + ", ".join(sorted(safe_repr(item) for item in list(value))) + "}")
    return _described(value)


def _copy_mapping(value: Mapping[Any, Any], inside: frozenset[int], depth: int) -> Any:
    try:
        items = list(value.items())
    except Exception:
        return _described(value)
    copied: dict[str, Any] = {}
    for key, item in items:
        if not isinstance(key, str):
            return _described(value)
        copied[str.__str__(key)] = item if type(item) is str else _copy(item, inside, depth + 1)
    return copied


def _described(value: Any, text: str | None = None) -> dict[str, str]:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return {"type": name, "repr": safe_repr(value) if text is None else text}


def safe_repr(value: Any) -> str:
    """The repr of any value, without memory addresses. Never raises."""
    try:
        return _ADDRESS.sub("", repr(value))
    except Exception as error:  # a foreign class must not be able to end the run it is recorded in
        return f"<repr raised {type(error).__name__}>"
