"""How an interval is written for people, and that a single conversation gives none."""

from __future__ import annotations

from optimizer.evaluation.scores import Interval

NO_INTERVAL = "1 conversation"
"""Shown in place of an interval, with the reason."""


def interval_text(interval: Interval | None, form: str = ".3f", *, between: str = "–") -> str:
    """An interval as `0.200–0.300`; without one, the reason.

    Args:
        form: format of a bound.
        between: what separates the bounds.
    """
    return NO_INTERVAL if interval is None else f"{interval[0]:{form}}{between}{interval[1]:{form}}"
