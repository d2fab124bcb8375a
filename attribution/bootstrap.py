"""Bootstrap intervals: how far a figure moves when its units are resampled (Efron 1979)."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Hashable, Sequence
from statistics import fmean

Interval = tuple[float, float]

FEWEST_CLUSTERS = 10
"""Of fewer, an interval over clusters is too narrow."""

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
    return middle([sum(value for value, _ in sample) / sum(share for _, share in sample) for sample in drawn])


def clustered_interval(
    values: Sequence[float], clusters: Sequence[Hashable], *, seed: int, resamples: int = 2000
) -> Interval:
    """95 % percentile interval of the mean of `values`, of which those of one cluster are resampled together.

    Cases of one conversation are not independent. Of fewer than `FEWEST_CLUSTERS` the values are resampled one by one,
    and the interval says nothing of other clusters.

    Args:
        clusters: of each value, in the same order.

    Raises:
        ValueError: no values, or another number of clusters.
    """
    groups: dict[Hashable, list[float]] = defaultdict(list)
    for value, cluster in zip(values, clusters, strict=True):
        groups[cluster].append(value)
    if len(groups) < FEWEST_CLUSTERS:
        return mean_interval(values, resamples=resamples, seed=seed)
    means, sizes = [fmean(group) for group in groups.values()], [len(group) for group in groups.values()]
    return mean_interval(means, resamples=resamples, seed=seed, weights=sizes)


def middle(resampled: Sequence[float]) -> Interval:
    """The middle 95 % of a figure's values in resamples; at least one is needed."""
    ordered = sorted(resampled)
    tail = (1 - _LEVEL) / 2 * (len(ordered) - 1)
    return ordered[math.floor(tail)], ordered[math.ceil(len(ordered) - 1 - tail)]
