from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.confidence_curve import cross_fitted, fit


@given(st.lists(st.tuples(st.floats(0.05, 0.97), st.booleans()), min_size=1, max_size=60))
def test_a_calibration_never_reverses_an_order_and_stays_a_probability(pairs: list[tuple[float, bool]]) -> None:
    calibrate = fit(pairs)
    said = [at / 50 for at in range(51)]
    made = [calibrate(one) for one in said]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(made))
    assert all(0 <= one <= 1 for one in made)


def test_overconfidence_is_taken_back() -> None:
    chance = random.Random(3)  # noqa: S311
    pairs = [(said, chance.random() < said / 2) for said in [chance.uniform(0.1, 0.95) for _ in range(2000)]]
    calibrate = fit(pairs)
    assert calibrate(0.8) == pytest.approx(0.4, abs=0.06)
    held_out = cross_fitted(pairs)
    gap = abs(sum(said for said, _ in held_out) - sum(right for _, right in held_out)) / len(pairs)
    assert gap < 0.03


def test_cases_that_nothing_tells_apart_share_one_confidence() -> None:
    pairs = [(0.5, at % 3 == 0) for at in range(30)]
    assert fit(pairs)(0.5) == pytest.approx(1 / 3, abs=0.001)
    assert all(said == pytest.approx(1 / 3, abs=0.03) for said, _ in cross_fitted(pairs))


def test_less_sure_than_any_labelled_case_is_less_than_they_were_worth() -> None:
    curve = fit([(at / 20, at > 8) for at in range(1, 20)])
    said, right = curve.points[0]
    assert curve(said) == right
    assert curve(said / 2) == pytest.approx(right / 2)
    with pytest.raises(ValueError, match="labelled"):
        fit([])
