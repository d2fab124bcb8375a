"""How intervals, p values, money and times are written for people, and that one conversation gives no interval."""

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


def duration_text(seconds: float) -> str:
    """A time in the unit that has it in few digits: `56 µs`, `7.5 ms`, `84 s`, `12.5 min`."""
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    size, unit = next(((size, unit) for size, unit in ((1, "s"), (1e3, "ms")) if seconds * size >= 1), (1e6, "µs"))
    return f"{seconds * size:.2g} {unit}" if seconds * size < 100 else f"{seconds * size:.0f} {unit}"
