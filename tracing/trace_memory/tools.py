"""A function whose calls are recorded as tool calls."""

from __future__ import annotations

import functools
import inspect
import json
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tracing.files.depth import loads

P = ParamSpec("P")
R = TypeVar("R")


def with_calls_recorded(
    function: Callable[P, R], record: Callable[..., str], clock: Callable[[], float]
) -> Callable[P, R]:
    """The function, of which each call is given to `record` (a `TraceMemory.tool_call`)."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
        arguments = {name: _compatible(value) for name, value in signature.bind(*args, **kwargs).arguments.items()}
        begun, timer = clock(), time.perf_counter()
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            message = f"{type(error).__name__}: {_text_of(error)}"
            record(function.__name__, arguments, error=message, seconds=time.perf_counter() - timer, time=begun)
            raise
        spent = time.perf_counter() - timer
        record(function.__name__, arguments, _compatible(result), seconds=spent, time=begun)
        return result

    return recorded


def _compatible(value: Any) -> Any:
    """A value as JSON has it: its `str`, if it has no other form there."""
    try:
        return loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return _text_of(value)


def _text_of(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:  # a foreign class, or what is nested too deep, must not end the tool
        return f"<a {type(value).__name__} whose str raised {type(error).__name__}>"
