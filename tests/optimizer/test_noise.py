"""The noise floor: what differs between evaluations of one and the same candidate."""

import pytest
from marked_outcomes import outcomes

from optimizer.evaluation.noise import noise_floor
from tracing.errors import ModelError


def test_equal_repetitions_have_no_noise() -> None:
    found = noise_floor([outcomes("+-", "++")] * 3)
    assert (found.mean, found.deviation, found.noise, found.changed, found.questions) == (0.75, 0, 0, 0, 4)


def test_noise_is_what_two_scores_differ_by_without_cause_and_questions_that_flip_are_counted() -> None:
    found = noise_floor([outcomes("+-+-", "++++"), outcomes("+--+", "++++"), outcomes("----", "++++")])
    assert found.scores == (0.75, 0.75, 0.5)
    assert found.deviation == pytest.approx(0.1443, abs=1e-4)
    assert found.noise == pytest.approx(0.4001, abs=1e-4)
    assert (found.changed, found.questions) == (3, 8)


def test_one_repetition_and_a_partial_one_tell_nothing() -> None:
    with pytest.raises(ValueError, match="two repetitions"):
        noise_floor([outcomes("+")])
    with pytest.raises(ModelError):
        noise_floor([outcomes("+"), outcomes("+", tainted="a call failed")])
