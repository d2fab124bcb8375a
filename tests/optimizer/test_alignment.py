"""Alignment: whether gains on recorded inputs predict gains end to end, and how sure that is."""

import random

import pytest

from optimizer.objectives.alignment import FEWEST_PAIRS, Pair, alignment_of


def pairs(slope: float, noise: float, conversations: int = 20, each: int = 3) -> list[Pair]:
    drawn = random.Random(1)  # noqa: S311
    found = []
    for number in range(conversations):
        for _ in range(each):
            local = drawn.gauss(0, 1)
            found.append(Pair(f"c{number}", local, slope * local + noise * drawn.gauss(0, 1)))
    return found


def test_gains_that_go_together_align_and_gains_that_do_not_mislead() -> None:
    good, none, bad = (alignment_of(pairs(slope, 0.5)) for slope in (1.0, 0.0, -1.0))
    for found in (good, none, bad):
        assert found.correlation is not None
        assert found.ci is not None
        assert found.ci[0] <= found.correlation <= found.ci[1]
    assert (good.misleads, bad.misleads) == (False, True)
    assert good.correlation is not None
    assert good.correlation > 0.7


def test_few_pairs_or_equal_gains_say_nothing() -> None:
    few = alignment_of(pairs(-1.0, 0.1, conversations=FEWEST_PAIRS // 3 - 1))
    assert not few.misleads
    nothing = alignment_of([Pair(f"c{n}", 0.5, n / 10) for n in range(20)])
    assert (nothing.correlation, nothing.ci, nothing.pairs, nothing.misleads) == (None, None, 20, False)
    assert alignment_of([]).correlation is None


def test_equal_values_share_their_rank() -> None:
    tied = [Pair(f"c{n}", local, whole) for n, (local, whole) in enumerate([(0, 0), (0, 1), (1, 1), (2, 3)])]
    # Ranks 1.5 1.5 3 4 and 1 2.5 2.5 4.
    assert alignment_of(tied).correlation == pytest.approx(0.8333333)


@pytest.mark.parametrize(("conversations", "known"), [(1, False), (2, False), (4, False), (5, True)])
def test_too_few_conversations_have_no_interval(conversations: int, known: bool) -> None:
    found = alignment_of([Pair(f"c{n % conversations}", n, n) for n in range(20)])
    assert found.correlation == pytest.approx(1.0)
    assert (found.ci is not None) is known
