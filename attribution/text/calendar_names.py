"""The English names of months, days and seasons, and patterns that match them."""

from __future__ import annotations

_MONTHS_IN_ORDER = "January February March April May June July August September October November December"
MONTHS = tuple(_MONTHS_IN_ORDER.split())
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11), "winter": (12, 14)}
"""Season → its first and last month; one beyond 12 is in the year after."""

MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
"""Pattern of a month, in full or abbreviated."""

WEEKDAY = (
    r"(?:mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)\b"
)
"""Pattern of a day of the week, in full or abbreviated."""

SEASON = rf"(?:{'|'.join(SEASONS)})"
"""Pattern of a season."""


def month_number(name: str) -> int:
    """1 for January to 12 for December, in full or abbreviated."""
    return _place(MONTHS, name) + 1


def weekday_number(name: str) -> int:
    """0 for Monday to 6 for Sunday, as `date.weekday` counts, in full or abbreviated."""
    return _place(WEEKDAYS, name)


def _place(names: tuple[str, ...], name: str) -> int:
    return next(at for at, full_name in enumerate(names) if full_name[:3].lower() == name[:3].lower())
