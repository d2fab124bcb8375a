"""What a question needs: content that must survive from the evidence turns to the answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

from attribution.constants import STATED
from attribution.text.dates import Span

Basis = Literal["stated", "partly", "dated", "elsewhere", "unstated", "implied"]

PRIORS: dict[Basis, float] = {
    "stated": 1.0,
    "partly": 0.8,
    "dated": 0.8,
    "elsewhere": 0.65,
    "unstated": 0.65,
    "implied": 0.5,
}
"""Factor on the confidence by basis: an answer that must be inferred can be lost in ways words don't show."""


@dataclass(frozen=True, slots=True)
class Need:
    """Content that must survive for the answer to be possible.

    Attributes:
        forms: sets of content words; a text that holds enough of any one of them carries the content.
        turns: ids of the turns that say it; any of them is enough.
        label: how to name it in a sentence.
        basis: "stated" in the evidence; "partly" stated there; "dated", relative to when the turn was said; said
            "elsewhere", in other turns than the annotated ones; "unstated", in no words of any turn (it may have
            been in a picture); "implied", to be inferred from what the turns say.
        unique: no other turn says it, so that a text that does can only have it from these.
        threshold: least coverage of a form with which a text carries the content.
        denied: whether the turns say that it is not so.
        times: spans of time, any of which is the content; then words do not count.
        since: spans of time that give a span of time up to the day it was said, or from then on: two years ago, 2021.
        count: how many things are counted, so that naming each of them gives it; 0 if it is not such a number.
        day: the day on which the turns were said.
        on_that_day: the time is that of the turns themselves, so that a time stamp gives it.
    """

    forms: tuple[frozenset[str], ...]
    turns: tuple[str, ...]
    label: str
    basis: Basis = "stated"
    unique: bool = True
    threshold: float = STATED
    denied: bool = False
    times: tuple[Span, ...] = ()
    since: tuple[Span, ...] = ()
    count: int = 0
    day: date | None = None
    on_that_day: bool = False
