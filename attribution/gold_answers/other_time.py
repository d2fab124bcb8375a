"""Evidence that the gold answer is another time than the dated turns give, computed from the days they were said on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations

from attribution.explanations import quote
from attribution.gold_answers.claim import AnnotatedClaim
from attribution.gold_answers.suspicion import Finding
from attribution.gold_answers.transcript import Transcript
from attribution.text.calendar_names import WEEKDAY
from attribution.text.clauses import telling
from attribution.text.content import content_of, is_date
from attribution.text.dates import Span, spans_of
from attribution.text.numbers import QUANTITY, quantity_of
from attribution.text.question_kinds import is_count

Days = Mapping[str, date | None]
"""The day on which each turn was said, by its id."""

_SHARED = 0.34
_UNDATED = 45
_SHORT = 3
_WEEK, _SEASON, _YEAR = 7, 80, 365
_LAST_WEEKDAY = re.compile(rf"\b(?:last|past|previous|recent) {WEEKDAY}", re.IGNORECASE)

_UNITS = {"day": 1.0, "night": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}
_LENGTH = re.compile(rf"\b(?P<count>{QUANTITY}|\d+)[- ](?P<unit>{'|'.join(_UNITS)})s?\b", re.IGNORECASE)
_SLACK, _SLACK_OF_UNIT = 0.3, 0.6


def other_date(claim: AnnotatedClaim, reply: str, talk: Transcript, days: Days) -> Finding | None:
    """What speaks against the answer because the turns give another time; None if they may mean the same.

    A vaguer or a finer time that contains the other is the same. Times that the turns nearby name count too. Where
    no turn names a time, the day of the session counts, and the answer must be weeks away from it.
    """
    question = claim.question
    if not claim.cited:
        return None
    cited = [talk.turns[at].id for at in sorted(claim.cited)]
    near = [talk.turns[at].id for at in sorted(claim.around - claim.cited)]
    times, nearby = times_of(cited, talk, days, claim.topic), times_of((*cited, *near), talk, days)
    if is_count(question):
        return other_length(claim, reply, talk, [*nearby, *_days(cited, days)])
    gold = [span for answer in question.answers for span in spans_of(answer)]
    if not gold or not all(is_date(answer) and spans_of(answer) for answer in question.answers):
        return None
    # A turn of several that names no time tells of its day.
    undated = _days((turn for turn in cited if not times_of([turn], talk, days, claim.topic)), days)
    if any(may_be(right, span) for right in gold for span in (*times, *nearby, *(undated if times else ()))):
        return None
    if times and any(
        _gap(right, span) <= 1 and max(_length(right), _length(span)) <= _SHORT for right in gold for span in times
    ):
        return None
    spoken = _days(cited, days)
    # "Recently", or no time at all, may be weeks ago.
    if not times and (
        not spoken or any(_gap(right, span) <= _UNDATED for right in gold for span in (*spoken, *nearby))
    ):
        return None
    supported = any(
        may_be(reply_span, span) for reply_span in spans_of(reply, days[cited[-1]]) for span in (*times, *spoken)
    )
    when = " or ".join(map(_days_of_span, dict.fromkeys(times or spoken)))
    says = f"{', '.join(cited)} {'gives' if len(cited) == 1 else 'give'}"
    what = f"{says} {when}" if times else f"{says} no time and was said on {when}"
    reason = f"{what}, not the gold answer {quote(question.answers[0])}"
    if supported:
        reason += f"; the reply {quote(reply)} agrees with that"
    return Finding("date", bool(times), supported, reason, tuple(cited))


def times_of(turns: Iterable[str], talk: Transcript, days: Days, topic: frozenset[str] = frozenset()) -> list[Span]:
    """The times that turns name, in each way that people mean them; of a topic, those of the clauses that tell it."""
    times: list[Span] = []
    for turn in turns:
        text, day = talk.turns[talk.place[turn]].text, days[turn]
        if topic:
            text = telling(text, lambda clause: sum(talk.in_text(word, clause) for word in topic))
        for span in spans_of(text, day):
            times += _readings(span, text, day)
    return times


def _readings(span: Span, text: str, spoken_on: date | None) -> Iterator[Span]:
    """A time as it was resolved, and as it may be meant too.

    "Last Tuesday" on a Friday may be ten days ago, "last summer" in December the one just over, and "after three years"
    looks back as often as ahead.
    """
    yield span
    if spoken_on is None:
        return
    day = spoken_on.toordinal()
    if _length(span) == 1 and day - spoken_on.weekday() <= span[0] < day and _LAST_WEEKDAY.search(text):
        yield span[0] - _WEEK, span[1] - _WEEK
    if _SEASON <= _length(span) < _YEAR and span[1] + _YEAR < day:
        yield span[0] + _YEAR, span[1] + _YEAR
    if _length(span) >= _YEAR and span[0] > day:
        yield 2 * day - span[1], 2 * day - span[0]


def _days(turns: Iterable[str], days: Days) -> list[Span]:
    return [(day.toordinal(), day.toordinal()) for turn in turns if (day := days[turn])]


def may_be(first: Span, second: Span) -> bool:
    """Whether two times may be the same: one contains the other, or they share a good part of the shorter one."""
    length = min(_length(first), _length(second))
    common = min(first[1], second[1]) - max(first[0], second[0]) + 1
    if 1 < length <= 2 * _WEEK:
        common += 2
    return common >= max(1.0, _SHARED * length)


def _gap(first: Span, second: Span) -> int:
    return max(0, first[0] - second[1], second[0] - first[1])


def _length(span: Span) -> int:
    return span[1] - span[0] + 1


def _days_of_span(span: Span) -> str:
    first, last = date.fromordinal(span[0]), date.fromordinal(span[1])
    return f"{first}" if first == last else f"{first} to {last}"


def other_length(claim: AnnotatedClaim, reply: str, talk: Transcript, times: Sequence[Span]) -> Finding | None:
    """What speaks against an answer that says how long; None if the turns tell no length, or may mean the same.

    The time between any two of `times`, which the turns name or were said on, may be meant.
    """
    question = claim.question
    gold = [length for answer in question.answers for length in _lengths(answer)]
    spoken = [length for at in claim.around for length in _lengths(talk.turns[at].text)]
    between = [float(abs(first - second)) for first, second in combinations(sorted({span[0] for span in times}), 2)]
    lengths = [*spoken, *between]
    if not gold or not lengths or any(_as_long(right, length) for right in gold for length in lengths):
        return None
    numbers = {word for answer in question.answers for word in content_of(answer) if word.isdigit()}
    if any(talk.share([number], claim.around) for number in numbers):
        return None
    supported = any(_as_long(reply_length, length) for reply_length in _lengths(reply) for length in lengths)
    cited = [talk.turns[at].id for at in sorted(claim.cited)]
    length = " or ".join(f"{days:.0f} days" for days in dict.fromkeys(spoken or between))
    source = "tell of" if spoken else "are apart by"
    reason = (
        f"{', '.join(cited)} and the turns around {source} {length}, not the gold answer {quote(question.answers[0])}"
    )
    if supported:
        reason += f"; the reply {quote(reply)} agrees with that"
    return Finding("date", bool(spoken) or len(cited) > 1, supported, reason, tuple(cited))


def _lengths(text: str) -> list[float]:
    """The lengths of time that a text names, in days."""
    return [quantity_of(match["count"]) * _UNITS[match["unit"].lower()] for match in _LENGTH.finditer(text)]


def _as_long(first: float, second: float) -> bool:
    longer = max(first, second)
    unit = max((days for days in _UNITS.values() if days <= longer), default=1.0)
    return abs(first - second) <= max(_SLACK * longer, _SLACK_OF_UNIT * unit)
