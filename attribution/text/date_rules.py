"""The supported ways to name a point or span of time, each a pattern and how to resolve it."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from attribution.constants import TWO_DIGIT_YEARS
from attribution.text.calendar_names import MONTH, MONTHS, SEASON, SEASONS, WEEKDAY, month_number, weekday_number
from attribution.text.digits import has_digits
from attribution.text.languages.language_data import Language, filled, joined
from attribution.text.numbers import CJK_NUMERAL, QUANTITY, cjk_number, quantity_of
from tracing.package_data import packaged_tables

Span = tuple[int, int]
"""First and last day, both included, as `date.toordinal` counts them."""

FULL_DATE = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH},? \d{{4}}|{MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}"
    r"|\d{4}-\d{2}-\d{2})"
)
_NUMERIC = re.compile(
    r"(?<![\d./-])(?P<a>\d{1,2})(?P<sep>[./-])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4}|\d{2})(?!\d|[/-]\d|\.\d)"
)
_DIGITS_ALONE = re.compile(rf"\b(?P<year>\d{{4}})-(?P<month>\d{{2}})-(?P<day>\d{{2}})\b|{_NUMERIC.pattern}")
_MONTH_IN_DIGITS = re.compile(
    r"(?<![\d./-])(?:(?P<y>(?:19|20)\d{2})[-/](?P<m>0[1-9]|1[0-2])|(?P<m2>0?[1-9]|1[0-2])/(?P<y2>(?:19|20)\d{2})"
    r"|(?P<m3>0[1-9]|1[0-2])\.(?P<y3>(?:19|20)\d{2}))(?![\d/-]|\.\d)"
)
_SATURDAY = 5
_UNIT = r"(?:day|night|weekend|week|month|year)"
_LAST = r"(?:last|previous|past|preceding|prior)"
# Months with a capital letter, and mostly verbs without one: this may be late, those 3 march on.
_VERB = r"(?-i:may|march)\b"


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to name a time, and how it resolves when said on a day (None if unknown)."""

    pattern: re.Pattern[str]
    resolve: Callable[[re.Match[str], date], Span | None]

    def spans(self, text: str, spoken_on: date) -> Iterator[Span]:
        """The spans that the rule finds in a text; a day that does not exist (31 February) is skipped."""
        for match in self.pattern.finditer(text):
            with suppress(ValueError, OverflowError):
                span = self.resolve(match, spoken_on)
                if span is not None:
                    yield span


@lru_cache(maxsize=4096)
def english_moment(text: str) -> date | None:
    """The day that an English date names, in words or as 2024-03-04; None if it names none."""
    for rule in ABSOLUTE:
        for first, last in rule.spans(text, date(1, 1, 1)):
            if first == last:
                return date.fromordinal(first)
    return None


def numeric_days(text: str, language: Language) -> tuple[tuple[Span, ...], str]:
    """The days that a text names as in 5/8/2024, and the text with them crossed out.

    English with slashes or dashes has two orders: there it is both 5 August and 8 May, unless only one of them exists.
    """
    days = [day for date in _NUMERIC.finditer(text) for day in _numeric(date, language)]
    return tuple(days), _NUMERIC.sub(lambda date: "¦" * len(date[0]), text) if days else text


def spelt_out(text: str, language: Language) -> str:
    """A text whose dates in digits (2024-05-08, 8.5.2024) have the month in English, unless they have two readings."""
    if not has_digits(text):
        return text

    def in_words(match: re.Match[str]) -> str:
        days = list(_numeric(match, language)) if match["a"] else [_iso(match)]
        if len(days) != 1 or days[0] is None:
            return match[0].replace(".", " ")
        day = date.fromordinal(days[0][0])
        return f"{day.day} {MONTHS[day.month - 1]} {day.year}"

    return months_spelt_out(_DIGITS_ALONE.sub(in_words, text))


def months_spelt_out(text: str) -> str:
    """A text with its months in digits (2023-06, 06/2023) in English words; 2010-12 may be a span of years."""

    def in_words(match: re.Match[str]) -> str:
        month, year = int(match["m"] or match["m2"] or match["m3"]), match["y"] or match["y2"] or match["y3"]
        years = "-" in match[0] and month > int(year) % 100
        return match[0] if years else f"{MONTHS[month - 1]} {year}"

    return _MONTH_IN_DIGITS.sub(in_words, text) if has_digits(text) else text


def _iso(match: re.Match[str]) -> Span | None:
    with suppress(ValueError):
        return _day(date(int(match["year"]), int(match["month"]), int(match["day"])))
    return None


def _numeric(match: re.Match[str], language: Language) -> Iterator[Span]:
    if len(match["y"]) == 2 and (match["sep"] == "-" or (match["sep"] == "." and language == "en")):
        return
    year = int(match["y"]) if len(match["y"]) == 4 else _century(int(match["y"]))
    orders = [(int(match["a"]), int(match["b"])), (int(match["b"]), int(match["a"]))]
    days: list[Span] = []
    for day, month in orders:
        with suppress(ValueError):
            days.append(_day(date(year, month, day)))
    is_plain = match["sep"] == "." or language != "en"
    yield from dict.fromkeys(days[:1] if is_plain else days)


def _century(year: int) -> int:
    return year + (2000 if year < TWO_DIGIT_YEARS else 1900)


def _day(day: date) -> Span:
    return day.toordinal(), day.toordinal()


def _whole_month(year: int, month: int) -> Span:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return date(year, month, 1).toordinal(), date(year, month, monthrange(year, month)[1]).toordinal()


def _whole_year(year: int) -> Span:
    return date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal()


def _week(day: date) -> Span:
    monday = day.toordinal() - day.weekday()
    return monday, monday + 6


def _weekend(day: date) -> Span:
    monday = _week(day)[0]
    return monday + 4, monday + 6


def _weekday(name: str, day: date, step: int) -> date:
    """The nearest day of this name before (step -1) or after (+1) a day."""
    number = weekday_number(name)
    day += timedelta(step)
    while day.weekday() != number:
        day += timedelta(step)
    return day


def _month(name: str) -> int:
    return int(name) if name.isdecimal() else month_number(name)


def _group(match: re.Match[str], name: str) -> str:
    """A named group of a match, or the second one of that name."""
    groups = match.groupdict()
    return groups[name] or groups[f"{name}2"]


def _shifted(unit: str, day: date, count: int) -> Span:
    """The unit (day, week, month …) that many units after a day; before it, if negative."""
    unit = unit.lower()
    if unit in ("day", "night"):
        return _day(day + timedelta(count))
    if unit == "week":
        return _week(day + timedelta(7 * count))
    if unit == "weekend":
        # On a Sunday the weekend before is still last week's.
        return _weekend(day + timedelta(7 * count))
    if unit == "month":
        return _whole_month(day.year, day.month + count)
    return _whole_year(day.year + count)


def _ago(text: str, unit: str, day: date, sign: int) -> Span:
    count = quantity_of(text)
    span = _shifted(unit, day, sign * count)
    if re.search("few|several|couple", text, re.IGNORECASE) and unit.lower() not in ("month", "year"):
        slack = {"day": 2, "night": 2}.get(unit.lower(), 7)
        return span[0] - slack, span[1] + slack
    if unit.lower() == "week" and count:
        exact = day.toordinal() + sign * 7 * count
        return exact - 3, exact + 3
    return span


def _season(name: str, year: int) -> Span:
    first, last = SEASONS[name.lower()]
    return _whole_month(year, first)[0], _whole_month(year, last)[1]


def _year_nearest(month: int, spoken_on: date) -> int:
    """The year of a month named without one: that in which it is nearest to when it is said."""
    return min(
        (spoken_on.year - 1, spoken_on.year, spoken_on.year + 1),
        key=lambda y: abs((y - spoken_on.year) * 12 + month - spoken_on.month),
    )


def _named_month(match: re.Match[str], spoken_on: date) -> Span:
    """`last March` and `next March` are not the current month; without such a word it is the nearest."""
    month, way = month_number(match["month"]), match["way"].lower()
    if way == "last":
        return _whole_month(spoken_on.year - (month >= spoken_on.month), month)
    if way == "next":
        return _whole_month(spoken_on.year + (month <= spoken_on.month), month)
    return _whole_month(_year_nearest(month, spoken_on), month)


def _day_of_month(match: re.Match[str], spoken_on: date) -> Span:
    month = _month(_group(match, "month"))
    return _day(date(_year_nearest(month, spoken_on), month, int(_group(match, "day"))))


def _numbered_day(match: re.Match[str], spoken_on: date) -> Span:
    """`on the 17th`: of this month, or of the last if that is still to come."""
    day = date(spoken_on.year, spoken_on.month, int(match["d"]))
    return _day(
        day
        if day <= spoken_on
        else date(spoken_on.year - (spoken_on.month == 1), (spoken_on.month - 2) % 12 + 1, day.day)
    )


def _before(match: re.Match[str], _: date) -> Span | None:
    """`the Friday before 22 October 2023`, `two weeks after 3 July`."""
    anchor = english_moment(match["anchor"])
    if anchor is None:
        return None
    sign = 1 if match["way"].lower() in ("after", "following") else -1
    unit = match["unit"].lower()
    count = quantity_of(match["count"]) if match["count"] else 1
    if unit not in ("day", "night", "week", "weekend", "month", "year"):
        return _day(_weekday(unit, anchor, sign) + timedelta(7 * sign * (count - 1)))
    if unit == "week":
        if match["count"]:
            return _ago(match["count"], "week", anchor, sign)
        edge = anchor.toordinal()
        return (edge - 7, edge - 1) if sign < 0 else (edge + 1, edge + 7)
    if unit == "weekend" and sign > 0 and anchor.weekday() < _SATURDAY:
        # The one that is still to come in the same week.
        count -= 1
    return _shifted(unit, anchor, sign * count)


def _part_of_month(match: re.Match[str], _: date) -> Span:
    """`early June 2023`, `the first week of August 2023`, `the last weekend of May 2023`."""
    first, last = _whole_month(int(match["year"]), month_number(match["month"]))
    which, unit = match["which"].lower(), (match["unit"] or "").lower()
    if unit == "weekend":
        friday = _weekday(
            "friday", date.fromordinal(first - 1 if which != "last" else last + 1), -1 if which == "last" else 1
        )
        friday += timedelta(7 * {"second": 1, "3rd": 2, "4th": 3}.get(which, 0))
        return friday.toordinal(), friday.toordinal() + 2
    at = {"early": 0, "first": 0, "beginning": 0, "second": 1, "mid": 1, "middle": 1, "3rd": 2, "4th": 3}.get(which)
    if unit == "week" and at is not None:
        return first + 7 * at, first + 7 * at + 6
    if unit == "week" or at is None:
        return last - (6 if unit else 10), last
    return first + 10 * at, first + 10 * at + 9


_RESOLVERS: Mapping[str, Callable[..., Span | None]] = {
    "before": _before,
    "part_of_month": _part_of_month,
    "week_of": lambda m, _: _shifted(m["unit"], day, 0) if (day := english_moment(m["anchor"])) else None,
    "day_of": lambda m, _: _day(date(int(m["y"]), _month(m["m"]), int(m["d"]))),
    "month_of": lambda m, _: _whole_month(int(m["y"]), _month(m["m"])),
    "season_of": lambda m, _: _season(m["s"], int(m["y"])),
    "year_of": lambda m, _: _whole_year(int(m["y"])),
    "shifted": lambda m, day, unit, count: _shifted(unit or m["u"], day, count),
    "last_unit": lambda m, day: (
        (day.toordinal() - 7, day.toordinal() - 1) if m["u"].lower() == "week" else _shifted(m["u"], day, -1)
    ),
    "ago": lambda m, day, sign: _ago(_group(m, "n"), _group(m, "u"), day, sign),
    "years_ago": lambda m, day: _whole_year(day.year - quantity_of(m["n"])),
    "weekday": lambda m, day, offset, step: _day(_weekday(m["d"], day + timedelta(offset), step)),
    "weekdays_ago": lambda m, day: _day(_weekday(m["d"], day, -1) - timedelta(7 * (quantity_of(m["n"]) - 1))),
    "near_season": lambda m, day: _season(m["s"], day.year + {"last": -1, "next": 1}.get(m["w"].lower(), 0)),
    "cjk_days_ago": lambda m, day: _day(day - timedelta(_cjk_quantity(_group(m, "n")))),
    "cjk_years_ago": lambda m, day: _whole_year(day.year - _cjk_quantity(m["n"])),
    "day_of_month": _day_of_month,
    "named_month": _named_month,
    "numbered_day": _numbered_day,
}
_PARTS = {
    "full_date": FULL_DATE,
    "quantity": QUANTITY,
    "cjk_numeral": CJK_NUMERAL,
    "month": MONTH,
    "weekday": WEEKDAY,
    "season": SEASON,
    "unit": _UNIT,
    "last": _LAST,
    "verb": _VERB,
}


def _rules(table: str) -> tuple[Rule, ...]:
    """The rules of a table of `dates.toml`: the pattern, by what it resolves, and the arguments of that."""
    return tuple(
        Rule(re.compile(filled(joined(pattern), _PARTS), re.IGNORECASE), _resolving(*resolver))
        for pattern, *resolver in packaged_tables("attribution", "text/languages/dates.toml")[table]
    )


def _resolving(name: str, *args: str | int) -> Callable[[re.Match[str], date], Span | None]:
    return lambda match, spoken_on: _RESOLVERS[name](match, spoken_on, *args)


def _cjk_quantity(text: str) -> int:
    return int(text) if text.isdecimal() else cjk_number(text)


ANCHORED, ABSOLUTE, RELATIVE = map(_rules, ("anchored", "absolute", "relative"))
