"""Agreement of two judges: published values, and what is not defined stays undefined."""

import pytest

from attribution.judging.agreement import agreement


def table(both: int, ours: int, theirs: int, neither: int) -> list[tuple[bool, bool, float]]:
    kinds = ((True, True, both), (True, False, ours), (False, True, theirs), (False, False, neither))
    return [(first, second, 1.0 if first else -1.0) for first, second, count in kinds for _ in range(count)]


def test_kappa_is_the_agreement_beyond_chance() -> None:
    # The usual textbook example: 70 % observed, 50 % by chance.
    found = agreement(table(20, 5, 10, 15))
    assert found is not None
    assert (found.n, found.accuracy) == (50, 0.7)
    assert found.kappa == pytest.approx(0.4)


def test_auc_counts_pairs_in_the_right_order_and_ties_half() -> None:
    found = agreement([(True, True, 3.0), (True, False, 1.0), (True, True, 1.0), (False, False, -1.0)])
    assert found is not None
    assert found.auc == pytest.approx(3.5 / 4)


def test_what_is_not_defined_is_not_a_number() -> None:
    assert agreement([]) is None
    same = agreement(table(4, 0, 0, 0))
    assert same is not None
    assert (same.accuracy, same.kappa, same.auc) == (1.0, None, None)
