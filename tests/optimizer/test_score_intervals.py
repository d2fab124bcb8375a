"""Intervals of scores and of differences stay honest where few conversations happen to be alike."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attribution.confidence_intervals import wilson_interval
from optimizer.evaluation.statistics import (
    _t_quantile,
    difference_interval,
    lower_bound,
    score_interval,
    sign_flip_p,
)


@pytest.mark.parametrize("score", [0.0, 0.25, 0.5, 1.0])
def test_conversations_that_score_alike_leave_the_interval_of_their_questions(score: float) -> None:
    interval = score_interval([score] * 6, [4] * 6)
    assert interval == pytest.approx(wilson_interval(score, 24))
    assert interval is not None
    assert interval[1] - interval[0] > 0.1


@pytest.mark.parametrize("delta", [-1.0, -0.25, 0.0, 0.1, 1.0])
def test_equal_differences_leave_an_interval_of_some_width(delta: float) -> None:
    interval = difference_interval([delta] * 6, 60)
    assert interval is not None
    low, high = interval
    assert -1 <= low <= delta <= high <= 1
    assert high - low > 0.05
    if delta:
        assert sign_flip_p([delta] * 6) < 0.05
        assert low > 0 or high < 0


@given(st.lists(st.integers(0, 8), min_size=2, max_size=12))
def test_an_interval_holds_its_score_and_lies_in_what_is_possible(right: list[int]) -> None:
    units = [each / 8 for each in right]
    mean = sum(units) / len(units)
    interval = score_interval(units, [8] * len(units))
    assert interval is not None
    assert 0 <= interval[0] <= mean <= interval[1] <= 1
    assert interval[0] < interval[1]


def test_a_single_conversation_says_nothing_of_others() -> None:
    assert score_interval([0.5], [10]) is None
    assert difference_interval([0.5], 10) is None


def test_conversations_that_differ_widen_the_interval_beyond_that_of_their_questions() -> None:
    alike, apart = (score_interval(units, [10] * 6) for units in ([0.5] * 6, [0.0, 1.0] * 3))
    assert alike is not None
    assert apart is not None
    assert apart[0] < alike[0] - 0.1
    assert apart[1] > alike[1] + 0.1


def test_more_conversations_make_an_interval_narrower_and_weights_are_those_of_the_questions() -> None:
    few, many = (score_interval([0.2, 0.6] * n, [5] * 2 * n) for n in (3, 30))
    assert few is not None
    assert many is not None
    assert many[1] - many[0] < (few[1] - few[0]) / 2
    uneven = score_interval([0.2, 1.0, 1.0, 1.0], [90, 3, 3, 3])
    assert uneven is not None
    assert uneven[0] < (18 + 9) / 99 < uneven[1]


def test_of_many_conversations_the_interval_of_a_difference_is_the_normal_one() -> None:
    chance = random.Random(0)  # noqa: S311
    deltas = [chance.gauss(0.1, 0.3) for _ in range(400)]
    low, high = stats.norm.interval(0.95, sum(deltas) / 400, stats.sem(deltas))
    assert difference_interval(deltas, 4000) == pytest.approx((low, high), abs=0.001)


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 9, 31, 200])
def test_the_quantile_is_that_of_students_t(freedom: int) -> None:
    assert _t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=0.005)


@pytest.mark.parametrize(
    ("count", "asked", "rate", "alike"), [(6, 4, 0.5, 60.0), (6, 10, 0.9, 20.0), (12, 4, 0.2, 10.0)]
)
def test_the_interval_of_a_score_holds_the_true_one_as_often_as_it_says(
    count: int, asked: int, rate: float, alike: float
) -> None:
    """Conversations differ by a beta distribution; the percentile bootstrap held the true score in 0.82 to 0.90."""
    chance, held = random.Random(1), 0  # noqa: S311
    for _ in range(1000):
        units = []
        for _ in range(count):
            own = chance.betavariate(rate * alike, (1 - rate) * alike)
            units.append(sum(chance.random() < own for _ in range(asked)) / asked)
        interval = score_interval(units, [asked] * count)
        assert interval is not None
        held += interval[0] <= rate <= interval[1]
    assert held >= 940


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 9, 31, 200])
def test_so_are_the_quantiles_of_a_one_sided_bound(freedom: int) -> None:
    for share in (0.8, 0.95):
        assert _t_quantile(freedom, share) == pytest.approx(stats.t.ppf(share, freedom), rel=0.005)


def test_the_lower_bound_of_many_conversations_is_the_normal_one() -> None:
    chance = random.Random(1)  # noqa: S311
    deltas = [chance.gauss(0.02, 0.3) for _ in range(400)]
    low = stats.norm.ppf(0.05, sum(deltas) / 400, stats.sem(deltas))
    assert lower_bound(deltas, 4000) == pytest.approx(low, abs=0.001)


def test_equal_replies_do_not_show_that_no_question_is_ever_lost() -> None:
    assert lower_bound([0.0] * 10, 100) == pytest.approx(-0.026, abs=0.001)
    assert lower_bound([0.0] * 32, 320) == pytest.approx(-0.008, abs=0.001)
    # One step from a loss to a gain moves the bound by about that step.
    bounds = [lower_bound([lost / 1000] * 10, 1000) for lost in (-1, 0, 1)]
    assert bounds == sorted(bounds)
    assert lower_bound([-0.1], 10) is None


@pytest.mark.parametrize(("lost", "gained"), [(0.02, 0.0), (0.05, 0.0), (0.07, 0.05), (0.22, 0.2)])
def test_what_loses_the_margin_is_rarely_shown_to_lose_less(lost: float, gained: float) -> None:
    chance = random.Random(2)  # noqa: S311
    shown = 0
    for _ in range(1000):
        drawn = [[chance.random() for _ in range(10)] for _ in range(32)]
        deltas = [(sum(at > 1 - gained for at in unit) - sum(at < lost for at in unit)) / 10 for unit in drawn]
        bound = lower_bound(deltas, 320)
        shown += bound is not None and bound > gained - lost
    assert 0.01 < shown / 1000 < 0.08
