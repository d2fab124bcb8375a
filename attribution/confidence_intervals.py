"""Confidence intervals: of a figure whose units are resampled (bootstrap, Efron 1979), and of a share (Wilson 1927).

Wilson's is never of no width, also where all of a few trials end alike.
"""

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

Z = 1.959964
"""Of a two-sided level of 95 %."""


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


def wilson_interval(share: float, trials: float, *, z: float = Z) -> tuple[float, float]:
    """The interval of a share of independent trials; of their mean, too, where each lies between 0 and 1.

    Args:
        share: of the trials, 0 to 1.
        trials: how many, more than 0; the effective number may be a fraction.
        z: normal quantile of the level, by default of 95 %, two-sided.
    """
    middle = share + z * z / trials / 2
    reach = z * math.sqrt(max(0.0, share * (1 - share)) / trials + (z / trials) ** 2 / 4)
    whole = 1 + z * z / trials
    return max(0.0, (middle - reach) / whole), min(1.0, (middle + reach) / whole)
