"""Bootstrap intervals: how far a figure moves when its units are resampled (Efron 1979)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

Interval = tuple[float, float]

_LEVEL = 0.95


def mean_interval(
    values: Sequence[float], *, resamples: int, seed: int, weights: Sequence[float] | None = None
) -> Interval:
    """95 % percentile interval of the mean of `values`, by default of equal weight; equal seeds give equal intervals.

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("a bootstrap interval needs at least one value")
    chance = random.Random(seed)  # noqa: S311 - statistics, no secret
    count = len(values)
    if weights is None:
        return middle([sum(chance.choices(values, k=count)) / count for _ in range(resamples)])
    # As shares of the largest, equal weights are 1 and give the interval without weights, to the last digit.
    shares = [weight / max(weights) for weight in weights]
    units = [(value * share, share) for value, share in zip(values, shares, strict=True)]
    drawn = (chance.choices(units, k=count) for _ in range(resamples))
    return middle([sum(value for value, _ in each) / sum(share for _, share in each) for each in drawn])


def middle(resampled: Sequence[float]) -> Interval:
    """The middle 95 % of a figure's values in resamples; at least one is needed."""
    ordered = sorted(resampled)
    tail = (1 - _LEVEL) / 2 * (len(ordered) - 1)
    return ordered[math.floor(tail)], ordered[math.ceil(len(ordered) - 1 - tail)]
