"""How much work something is, counted in lines of Python that were run: the same on any machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(action: Callable[[], object]) -> int:
    """Lines run by `action`, a pass through a loop counting again."""
    count = 0

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return local

    before = sys.gettrace()
    sys.settrace(lambda frame, event, arg: local)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def grows_with(make: Callable[[int], Callable[[], object]], small: int = 60, times: int = 6) -> float:
    """By how much more the work grows than the size: about 1 where it is linear, about `times` where quadratic."""
    return steps(make(times * small)) / steps(make(small)) / times
