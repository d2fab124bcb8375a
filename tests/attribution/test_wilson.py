"""Wilson's interval of a share."""

from __future__ import annotations

import pytest
from scipy.stats import binomtest

from attribution.confidence_intervals import wilson_interval


@pytest.mark.parametrize(("right", "trials"), [(0, 6), (3, 6), (6, 6), (1, 24), (180, 200)])
def test_the_interval_is_that_of_scipy(right: int, trials: int) -> None:
    known = binomtest(right, trials).proportion_ci(0.95, method="wilson")
    assert wilson_interval(right / trials, trials) == pytest.approx((known.low, known.high), abs=1e-6)
