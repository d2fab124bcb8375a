"""Beliefs about gains: what is measured counts by how sure it is, and a comparison is worth what it may change."""

from __future__ import annotations

import math

import pytest

from optimizer.racing.beliefs import USUAL_GAIN, Belief, believed_of_new


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


def test_a_comparison_is_worth_the_more_the_nearer_a_rival_is_and_nothing_where_all_is_known() -> None:
    text = Belief(0.1, 0.1)
    near, far = text.learned(0.1, 0.1), text.learned(0.1, 0.5)
    assert near > far > 0
    assert text.learned(0.05, 0.1) > near
    assert Belief(0.1, 0.0).learned(0.1, 0.1) == 0.0


def test_of_equal_beliefs_each_is_expected_to_be_as_far_ahead_of_the_other() -> None:
    first, second = Belief(0.1, 0.3), Belief(0.1, 0.4)
    assert first.lead(second) == second.lead(first) == pytest.approx(0.5 / math.sqrt(2 * math.pi))
    assert Belief(0.3, 0.0).lead(Belief(0.1, 0.0)) == pytest.approx(0.2)
    assert Belief(0.1, 0.0).lead(Belief(0.3, 0.0)) == 0.0


def test_where_texts_lost_less_is_expected_of_the_next_which_may_still_be_the_first_that_gains() -> None:
    assert believed_of_new([]) == (0.0, pytest.approx(USUAL_GAIN))
    losses, mixed = [(-0.1, 0.05)] * 20, [(0.4, 0.05), (-0.4, 0.05)] * 10
    assert believed_of_new(losses) == (pytest.approx(-0.078, abs=0.001), USUAL_GAIN)
    assert believed_of_new(mixed).deviation > 1.5 * USUAL_GAIN
