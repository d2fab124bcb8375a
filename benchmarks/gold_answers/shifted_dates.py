"""Times that are wrong: an answer that is a date, a month, a year or a duration, moved by a plausible slip."""

from __future__ import annotations

import random
import re
from datetime import date, timedelta

from benchmarks.english_times import MONTHS, NUMBERS

_MONTH = "|".join(MONTHS)
_DAY_FIRST = re.compile(rf"\b(?P<d>\d{{1,2}}) (?P<m>{_MONTH}),? (?P<y>\d{{4}})\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b(?P<m>{_MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})\b", re.IGNORECASE)
_MONTH_ONLY = re.compile(rf"\b(?P<m>{_MONTH}),? (?P<y>\d{{4}})\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?P<y>20\d{2})\b")
_DURATION = re.compile(
    rf"\b(?P<n>\d{{1,2}}|{'|'.join(NUMBERS[:10])}) (?P<u>(?:day|week|month|year)s?)\b", re.IGNORECASE
)
_DAYS = (-14, -10, -7, -5, 5, 7, 10, 14, -30, 30, -365, 365)
_MONTHS_OFF = (-12, -2, -1, 1, 2, 12)


def is_time(answer: str) -> bool:
    """Whether an answer names a time that `shifted` can move."""
    return any(form.search(answer) for form in (_MONTH_ONLY, _MONTH_FIRST, _YEAR, _DURATION))


def shifted(answer: str, chance: random.Random) -> str | None:
    """The answer with its first time moved: a day by 5 days to a year, a month by months, a year or a number by a few.

    None where it names no time.
    """
    for form in (_DAY_FIRST, _MONTH_FIRST):
        found = form.search(answer)
        if found:
            return _replaced(answer, found, _day(found, chance))
    found = _MONTH_ONLY.search(answer)
    if found:
        return _replaced(answer, found, _month(found, chance))
    found = _YEAR.search(answer)
    if found:
        return _replaced(answer, found, str(int(found["y"]) + chance.choice((-3, -2, -1, 1, 2))))
    found = _DURATION.search(answer)
    if found:
        count = found["n"].lower()
        number = int(count) if count.isdigit() else NUMBERS.index(count) + 1
        other = number + chance.choice((2, 3, 4)) * (1 if number < 5 else chance.choice((-1, 1)))
        return _replaced(answer, found, f"{other} {found['u'].rstrip('s')}s")
    return None


def moved_time(text: str) -> str | None:
    """The date, month or year in a text that `shifted` moves; None where that is a duration or it names no time."""
    forms = (_DAY_FIRST, _MONTH_FIRST, _MONTH_ONLY, _YEAR)
    return next((match[0] for form in forms if (match := form.search(text))), None)


def _replaced(answer: str, found: re.Match[str], by: str | None) -> str | None:
    return None if by is None else answer[: found.start()] + by + answer[found.end() :]


def _day(found: re.Match[str], chance: random.Random) -> str | None:
    try:
        told = date(int(found["y"]), _number(found["m"]), int(found["d"]))
    except ValueError:
        return None
    moved = told + timedelta(days=chance.choice(_DAYS))
    name = MONTHS[moved.month - 1]
    day_first = found["d"] == found[0][: len(found["d"])]
    return f"{moved.day} {name} {moved.year}" if day_first else f"{name} {moved.day}, {moved.year}"


def _month(found: re.Match[str], chance: random.Random) -> str:
    at = int(found["y"]) * 12 + _number(found["m"]) - 1 + chance.choice(_MONTHS_OFF)
    return f"{MONTHS[at % 12]} {at // 12}"


def _number(month: str) -> int:
    return MONTHS.index(month.capitalize()) + 1
