"""Whether what texts gain on recorded inputs predicts what they gain end to end."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import StatisticsError, correlation
from typing import NamedTuple

from attribution.confidence_intervals import Interval, middle

FEWEST_PAIRS = 12
"""Fewer say nothing."""

FEWEST_CONVERSATIONS = 5
"""Fewer have no interval: drawn again, the same two or three mostly give the correlation that they have, or 1."""

LEAST = 0.2
"""An objective misleads if its correlation is under this with 97.5 % confidence: searching with it is then no better
than drawing texts by chance."""

RESAMPLES = 1000


class Pair(NamedTuple):
    """What one text gained over the champion on one conversation.

    Attributes:
        conversation: its id.
        local: by the objective, on the conversation's recorded inputs.
        whole: in mean score, end to end.
    """

    conversation: str
    local: float
    whole: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """How local gains go with gains end to end.

    Attributes:
        correlation: Spearman's rank correlation over texts and conversations, -1 to 1; None if it is not defined.
        ci: its 95 % bootstrap interval over conversations; None if it is not defined, or they are too few for one.
        pairs: number of pairs of a text and a conversation that were measured both ways.
        misleads: whether the objective is shown not to predict the answers.
    """

    correlation: float | None
    ci: Interval | None
    pairs: int
    misleads: bool = False


def alignment_of(pairs: Sequence[Pair], *, seed: int = 0) -> Alignment:
    """The rank correlation of local with end-to-end gains, and its interval."""
    coefficient = _rank_correlation(pairs)
    if coefficient is None:
        return Alignment(None, None, len(pairs))
    groups = defaultdict[str, list[Pair]](list)
    for pair in pairs:
        groups[pair.conversation].append(pair)
    if len(groups) < FEWEST_CONVERSATIONS:
        return Alignment(coefficient, None, len(pairs))
    drawn, units = random.Random(seed), list(groups.values())  # noqa: S311 (statistics, not secrets)
    resampled = (list(chain.from_iterable(drawn.choices(units, k=len(units)))) for _ in range(RESAMPLES))
    values = sorted(value for resample in resampled if (value := _rank_correlation(resample)) is not None)
    interval = middle(values) if values else None
    misleads = len(pairs) >= FEWEST_PAIRS and interval is not None and interval[1] < LEAST
    return Alignment(coefficient, interval, len(pairs), misleads)


def _rank_correlation(pairs: Sequence[Pair]) -> float | None:
    try:
        return correlation(_ranks([pair.local for pair in pairs]), _ranks([pair.whole for pair in pairs]))
    except StatisticsError:
        return None


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share their mean rank."""
    places = defaultdict[float, list[int]](list)
    for place, value in enumerate(sorted(values), start=1):
        places[value].append(place)
    return [sum(places[value]) / len(places[value]) for value in values]
