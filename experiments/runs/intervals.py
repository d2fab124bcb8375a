"""How intervals, p values and money are written for people, and that a single conversation gives no interval."""

from __future__ import annotations

from optimizer.evaluation.scores import Interval
from optimizer.evaluation.statistics import p_text

NO_INTERVAL = "1 conversation"
"""Shown in place of an interval, with the reason."""


def interval_text(interval: Interval | None, form: str = ".3f", *, between: str = "–") -> str:
    """An interval as `0.200–0.300`, with the format of a bound and what separates them; without one, the reason."""
    return NO_INTERVAL if interval is None else f"{interval[0]:{form}}{between}{interval[1]:{form}}"


def p_phrase(p_value: float) -> str:
    """A p value in a sentence: `p 0.012`, `p < 0.001`."""
    return f"p {p_text(p_value)}"


def money_text(value: float | None) -> str:
    """Money in the currency of the models' prices, to three digits and at least to the cent."""
    if not value:
        return "–"
    return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"
