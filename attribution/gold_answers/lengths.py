"""Evidence that something took another time than the gold answer says: as told, or between turns that are dated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from attribution.explanations import quote
from attribution.gold_answers.claim import AnnotatedClaim
from attribution.gold_answers.suspicion import Finding
from attribution.gold_answers.transcript import Transcript
from attribution.text.content import content_of
from attribution.text.dates import Span
from attribution.text.numbers import QUANTITY, quantity_of

_UNITS = {"day": 1.0, "night": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}
_LENGTH = re.compile(rf"\b(?P<count>{QUANTITY}|\d+)[- ](?P<unit>{'|'.join(_UNITS)})s?\b", re.IGNORECASE)
_SLACK, _SLACK_OF_UNIT = 0.3, 0.6


def other_length(claim: AnnotatedClaim, reply: str, talk: Transcript, times: Sequence[Span]) -> Finding | None:
    """What speaks against an answer that says how long; None if the turns tell no length, or may mean the same.

    Args:
        claim, reply, talk: as of the other kinds of evidence.
        times: what the turns name or were said on; the time between any two of them may be meant.
    """
    question = claim.question
    gold = [length for answer in question.answers for length in _lengths(answer)]
    spoken_lengths = [length for at in claim.around for length in _lengths(talk.turns[at].text)]
    between = [float(abs(first - second)) for first, second in combinations(sorted({span[0] for span in times}), 2)]
    told_lengths = [*spoken_lengths, *between]
    if (
        not gold
        or not told_lengths
        or any(_as_long(gold_length, told_length) for gold_length in gold for told_length in told_lengths)
    ):
        return None
    numbers = {word for answer in question.answers for word in content_of(answer) if word.isdigit()}
    if any(talk.share([number], claim.around) for number in numbers):
        return None
    supported = any(
        _as_long(reply_length, told_length) for reply_length in _lengths(reply) for told_length in told_lengths
    )
    cited = [talk.turns[at].id for at in sorted(claim.cited)]
    length = " or ".join(f"{days:.0f} days" for days in dict.fromkeys(spoken_lengths or between))
    source = "tell of" if spoken_lengths else "are apart by"
    reason = (
        f"{', '.join(cited)} and the turns around {source} {length}, not the gold answer {quote(question.answers[0])}"
    )
    if supported:
        reason += f"; the reply {quote(reply)} agrees with that"
    return Finding("date", bool(spoken_lengths) or len(cited) > 1, supported, reason, tuple(cited))


def _lengths(text: str) -> list[float]:
    """The lengths of time that a text names, in days."""
    return [quantity_of(match["count"]) * _UNITS[match["unit"].lower()] for match in _LENGTH.finditer(text)]


def _as_long(first: float, second: float) -> bool:
    longer = max(first, second)
    unit = max((days for days in _UNITS.values() if days <= longer), default=1.0)
    return abs(first - second) <= max(_SLACK * longer, _SLACK_OF_UNIT * unit)
