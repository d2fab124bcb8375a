import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.evaluation.statistics import power, sign_flip_p
from optimizer.gating.verdict import detectable, fewest_conversations

deltas = st.lists(st.integers(-10, 10).map(lambda tenths: tenths / 10), max_size=9)
real = st.lists(st.floats(-1, 1), max_size=12)


def brute_force(values: list[float], alternative: str) -> float:
    tenths = [round(10 * value) for value in values]
    observed = sum(tenths)
    sums = [
        sum(s * t for s, t in zip(signs, tenths, strict=True))
        for signs in itertools.product((1, -1), repeat=len(tenths))
    ]
    hits = [total >= observed if alternative == "greater" else abs(total) >= abs(observed) for total in sums]
    return sum(hits) / len(hits)


@given(deltas, st.sampled_from(["two-sided", "greater"]))
def test_sign_flip_p_counts_every_assignment(values: list[float], alternative: str) -> None:
    assert sign_flip_p(values, alternative) == pytest.approx(brute_force(values, alternative), abs=1e-12)


@given(real)
def test_sign_flip_p_is_a_probability_and_two_sided_is_symmetric(values: list[float]) -> None:
    p = sign_flip_p(values)
    assert 0 < p <= 1
    assert p == sign_flip_p([-value for value in values])
    assert p == sign_flip_p(list(reversed(values)))


@given(real)
def test_the_one_sided_ps_of_both_directions_cover_everything(values: list[float]) -> None:
    assert sign_flip_p(values, "greater") + sign_flip_p([-value for value in values], "greater") >= 1


def test_all_units_better_gives_the_smallest_p_there_is() -> None:
    assert sign_flip_p([0.1, 0.2, 0.3], "greater") == 1 / 8
    assert sign_flip_p([0.1] * 10) == 2 / 1024
    assert sign_flip_p([]) == sign_flip_p([0.0] * 5) == 1.0


def test_many_units_on_a_lattice_stay_exact_and_others_are_drawn() -> None:
    lattice = [random.Random(n).choice([-0.1, 0.1, 0.2]) for n in range(200)]  # noqa: S311
    assert sign_flip_p(lattice, seed=1) == sign_flip_p(lattice, seed=2)
    wide = [random.Random(n).gauss(0.2, 1.0) for n in range(40)]  # noqa: S311
    assert sign_flip_p(wide, seed=3) == sign_flip_p(wide, seed=3)
    # The normal approximation of the same test (mean over root of the sum of squares) lies close by.
    z = abs(sum(wide)) / sum(value * value for value in wide) ** 0.5
    normal = 2 * (1 - 0.5 * (1 + math.erf(z / 2**0.5)))
    assert sign_flip_p(wide) == pytest.approx(normal, abs=0.03)


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        sign_flip_p([0.1, float("nan")])


def test_power_grows_with_the_effect_and_is_about_the_level_without_one() -> None:
    none, some, much = (
        [effect + noise / 10 for noise in (-2, -1, -1, 0, 0, 0, 0, 1, 1, 2)] for effect in (0.0, 0.1, 0.3)
    )
    found = [power(values, 0.05, simulations=400) for values in (none, some, much)]
    assert found[0] <= 0.08
    assert found[0] < found[1] < found[2]
    assert found[2] >= 0.95
    assert power([], 0.05) == 0.0


def test_no_effect_of_three_units_can_be_seen_at_five_per_cent() -> None:
    assert power([0.5, 0.5, 0.5], 0.05, simulations=50) == 0.0


def test_power_of_many_uneven_units_is_quick_and_near_the_normal_one() -> None:
    rng = random.Random(0)  # noqa: S311
    values = [rng.gauss(0.3, 1.0) for _ in range(60)]
    mean = sum(values) / 60
    error = (sum((value - mean) ** 2 for value in values) / 60) ** 0.5 / 60**0.5
    normal = 0.5 * math.erfc((1.96 - mean / error) / 2**0.5)
    assert power(values, 0.05) == pytest.approx(normal, abs=0.06)


def test_what_a_test_can_show_grows_with_its_conversations_and_is_nothing_under_six() -> None:
    assert fewest_conversations() == 6
    assert [detectable(n) for n in (1, 5)] == [None, None]
    found = [detectable(n) for n in (6, 10, 32)]
    assert found == sorted(found, key=lambda each: -(each or 0))
    assert found[-1] == pytest.approx(0.099, abs=0.001)
