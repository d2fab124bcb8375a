"""Intervals over drawn-anew units."""

from __future__ import annotations

import random

import pytest

from attribution.confidence_intervals import clustered_interval, mean_interval, middle


def test_the_middle_leaves_two_and_a_half_per_cent_on_either_side() -> None:
    values = list(range(1001))
    random.Random(1).shuffle(values)  # noqa: S311
    assert middle(values) == (25, 975)


def test_equal_seeds_give_equal_intervals_and_an_interval_needs_values() -> None:
    values = [0.1, 0.4, 0.9, 0.3]
    first, again, other = (mean_interval(values, resamples=500, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first == mean_interval(values, resamples=500, seed=1, weights=[7] * 4)
    with pytest.raises(ValueError, match="at least one"):
        mean_interval([], resamples=500, seed=0)


def test_what_weighs_more_counts_for_more() -> None:
    values, weights = [0.2, *[1.0] * 5], [90.0, *[3.0] * 5]
    low, high = mean_interval(values, resamples=2000, seed=1, weights=weights)
    assert low < (90 * 0.2 + 15) / 105 < mean_interval(values, resamples=2000, seed=1)[0] <= high


def test_values_of_one_cluster_are_resampled_together() -> None:
    values, clusters = [1.0] * 60 + [0.0] * 60, [n // 10 for n in range(120)]
    apart = mean_interval(values, resamples=2000, seed=1)
    together = clustered_interval(values, clusters, resamples=2000, seed=1)
    assert together[0] < apart[0] < 0.5 < apart[1] < together[1]
    assert together == mean_interval([1.0] * 6 + [0.0] * 6, resamples=2000, seed=1)


def test_few_clusters_leave_the_interval_of_their_values() -> None:
    values, clusters = [1.0] * 40 + [0.0] * 50, [n // 10 for n in range(90)]
    assert clustered_interval(values, clusters, resamples=500, seed=1) == mean_interval(values, resamples=500, seed=1)
    with pytest.raises(ValueError, match="at least one"):
        clustered_interval([], [], resamples=500, seed=0)
