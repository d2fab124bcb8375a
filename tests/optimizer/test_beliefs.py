"""Beliefs about gains: what is measured counts by how sure it is, and a comparison is worth what it may change."""

from __future__ import annotations

import math

import pytest

from optimizer.racing.beliefs import NOTHING, Belief, Prospect, Venture, rate_of_measuring


def test_what_is_measured_counts_the_more_the_surer_it_is() -> None:
    prior = Belief(0.0, 0.15)
    assert prior.after(0.4, 0.0) == (pytest.approx(0.4), pytest.approx(0.0))
    assert prior.after(0.4, 0.15).mean == pytest.approx(0.2)
    assert 0 < prior.after(0.4, 1.0).mean < 0.01


def test_whoever_may_decline_a_loss_expects_a_gain_also_of_what_is_unsure() -> None:
    assert Belief(0.0, 0.1).improvement(0.0) == pytest.approx(0.0399, abs=1e-4)
    assert Belief(0.2, 0.0).improvement(0.05) == pytest.approx(0.15)
    assert Belief(-0.2, 0.0).improvement(0.0) == 0.0
    assert Belief(0.1, 0.05).improvement(0.05) < Belief(0.1, 0.05).improvement(0.0)


def test_what_a_measurement_may_show_averages_to_what_was_believed_and_is_never_more_than_is_possible() -> None:
    text = Belief(0.1, 0.2)
    prospects = text.measured(0.2, math.inf)
    assert sum(chance for _, chance in prospects) == pytest.approx(1)
    assert sum(belief.mean * chance for belief, chance in prospects) == pytest.approx(0.1)
    assert {belief.deviation for belief, _ in prospects} == {text.after(0, 0.2).deviation}
    bounded = text.measured(0.2, 0.3)
    assert max(belief.mean for belief, _ in bounded) == pytest.approx(text.after(0.3, 0.2).mean)
    assert max(belief.mean for belief, _ in prospects) > 0.3
    assert {belief for belief, _ in Belief(0.1, 0.0).measured(0.2, 1.0)} == {Belief(0.1, 0.0)}


def going_on(belief: Belief) -> Venture:
    return Venture(max(0.0, belief.mean), 90)


def test_measuring_pays_by_what_is_gone_on_with_afterwards_at_the_best_bar_for_it() -> None:
    good, bad = Prospect(Belief(0.4, 0.0), 0.2), Prospect(Belief(0.01, 0.0), 0.8)
    # A fifth of the texts is gone on with: 0.08 for 10 + 18 calls, where going on with any would bring 0.088 for 100.
    assert rate_of_measuring([bad, good], 10, going_on) == pytest.approx(0.08 / 28)
    assert rate_of_measuring([Prospect(Belief(0.4, 0.0), 1.0)], 10, going_on) == pytest.approx(0.4 / 100)
    assert rate_of_measuring([Prospect(Belief(-0.1, 0.0), 1.0)], 10, going_on) == 0.0


def test_beside_a_good_rival_measuring_pays_only_by_what_is_better() -> None:
    prospects = [Prospect(Belief(0.4, 0.0), 0.2), Prospect(Belief(0.0, 0.0), 0.8)]
    as_good, far_better = Venture(0.4, 90), Venture(0.8, 90)
    # The rival at once: 0.4 for 90 calls. What is as good adds nothing, and ten calls.
    assert rate_of_measuring(prospects, 10, going_on, as_good) == pytest.approx(0.4 / 100)
    assert rate_of_measuring(prospects, 10, going_on, far_better) == pytest.approx((0.2 * 0.4 + 0.8 * 0.8) / 100)
    worse = Venture(0.1, 90)
    assert rate_of_measuring(prospects, 10, going_on, worse) == pytest.approx(0.2 * 0.3 / 28)
    assert worse.rate < rate_of_measuring(prospects, 10, going_on, worse)
    assert NOTHING.rate == 0.0


def test_of_equal_beliefs_each_is_expected_to_be_as_far_ahead_of_the_other() -> None:
    first, second = Belief(0.1, 0.3), Belief(0.1, 0.4)
    assert first.lead(second) == second.lead(first) == pytest.approx(0.5 / math.sqrt(2 * math.pi))
    assert Belief(0.3, 0.0).lead(Belief(0.1, 0.0)) == pytest.approx(0.2)
    assert Belief(0.1, 0.0).lead(Belief(0.3, 0.0)) == 0.0
