"""The points and spans of time that a text names, resolved against the day on which it was said.

A week runs from Monday to Sunday, a weekend from Friday to Sunday; `last week` and `the week before` a day are the
seven days before it; `last Friday` is the latest Friday before the day it is said on, and `last March` the latest
before the month; a month without a year or such a word is the nearest; an approximate time (`a few weeks ago`) is a
span as vague as its words. 5/8/2024 is 5 August, except in English, where it is 8 May too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from attribution.constants import SAME_TIME, VAGUER, VAGUER_DAYS
from attribution.text.calendar_names import MONTH, MONTHS, SEASON, WEEKDAYS
from attribution.text.date_rules import (
    ABSOLUTE,
    ANCHORED,
    FULL_DATE,
    RELATIVE,
    Span,
    english_moment,
    months_spelt_out,
    numeric_days,
)
from attribution.text.digits import without_figures
from attribution.text.languages.reading_language import cached_in_language, language
from attribution.text.languages.times import in_english
from attribution.text.numbers import in_digits
from tracing.systems.conversations import Conversation

__all__ = ["Span", "as_precise_as", "days_of", "moment", "same_time", "spans_of", "without_stamp"]

_STAMP = re.compile(
    rf"^\W*(?:\d{{1,2}}:\d{{2}} ?(?:[ap]m)?,? (?:on )?)?(?P<date>{FULL_DATE})"
    r"(?:[ T,]+\d{1,2}:\d{2}(?::\d{2})?)?\W+",
    re.IGNORECASE,
)
_GLUED = re.compile(rf"(?<=\d)(?={MONTH})|(?<=[a-z])[,.](?=\d{{4}}\b)", re.IGNORECASE)
_NAMES = "|".join(name[:3] for name in (*MONTHS, *WEEKDAYS))
_CUE = re.compile(
    rf"\d|day|night|week|month|year|yester|morrow|now\b|evening|morning|{SEASON}|\b(?:{_NAMES})|teen|twent|[年月日天周週]",
    re.IGNORECASE,
)


def moment(text: str) -> date | None:
    """The day that a time stamp names (`1:56 pm on 8 May, 2023`, `2024-03-04 10:00`); None if none or several."""
    days = [first for first, last in spans_of(text) if first == last]
    return date.fromordinal(days[0]) if len(days) == 1 else None


def without_stamp(line: str) -> tuple[date | None, str]:
    """The time stamp at the start of a line of a context or a chunk, if any, and the rest of the line."""
    stamp = _STAMP.match(line)
    day = english_moment(stamp["date"]) if stamp else None
    return day, line[stamp.end() :] if stamp and day else line


def days_of(conversation: Conversation) -> dict[str, date | None]:
    """The day on which each turn was said, by its id, if its session's time gives it."""
    days = ((session, moment(session.time)) for session in conversation.sessions)
    return {turn.id: day for session, day in days for turn in session.turns}


@cached_in_language(16384)
def spans_of(text: str, spoken_on: date | None = None) -> tuple[Span, ...]:
    """The spans of time that a text names; relative ones only if the day it was said on is known."""
    read = language()
    if read == "en" and not _CUE.search(text):
        return ()
    # 2,004 is no year, and neither is $2004.
    text = in_digits(without_figures(_GLUED.sub(" ", text), read), read)
    numeric, remaining = numeric_days(text, read)
    phrases, remaining = in_english(remaining, read)
    remaining = months_spelt_out(remaining)
    spans = (span for phrase in (*phrases, remaining) for span in _english_spans(phrase, spoken_on))
    return tuple(dict.fromkeys((*numeric, *spans)))


def same_time(first: Span, second: Span) -> bool:
    """Whether two spans can mean the same time: they share a good part of the longer one.

    Spans of several days may be a day off, and a day inside a week or less matches it.
    """
    low, high = sorted((first, second), key=lambda span: span[1] - span[0])
    short, long = low[1] - low[0] + 1, high[1] - high[0] + 1
    common = min(first[1], second[1]) - max(first[0], second[0]) + 1
    if long <= 7 and common == short:
        return True
    if short > 1 and long <= 31:
        common = min(short, common + 2)
    return common > 0 and common >= SAME_TIME * long


def as_precise_as(span: Span, needed: Span) -> bool:
    """Whether a time, as found in a text, is as good an answer as the wanted one: the same, and not much vaguer."""
    common = min(span[1], needed[1]) - max(span[0], needed[0]) + 1
    length, enough = span[1] - span[0] + 1, needed[1] - needed[0] + 1
    return length <= max(enough + VAGUER_DAYS, VAGUER * enough) and common >= SAME_TIME * length


def _english_spans(text: str, spoken_on: date | None) -> Iterator[Span]:
    if not _CUE.search(text):
        return
    remaining = text
    for rule in (*ANCHORED, *ABSOLUTE, *(RELATIVE if spoken_on else ())):
        # What one rule has matched is not matched again by a more general rule.
        unmatched, matches = rule.pattern.subn(lambda match: "¦" * len(match[0]), remaining)
        if matches:
            yield from rule.spans(remaining, spoken_on or date(1, 1, 1))
        remaining = unmatched
