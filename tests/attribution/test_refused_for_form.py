"""Replies that hold the answer and count as wrong for their length are told of, with what to do."""

from __future__ import annotations

import pytest

from attribution.judging.words import METRICS, refused_for_form


def test_a_score_of_nothing_beside_replies_that_hold_the_answer_names_both_remedies() -> None:
    told = refused_for_form("short_contains", 0.0, 0.28)
    assert told is not None
    assert told.startswith("28% of the replies contain an accepted answer in more than 12 words")
    assert "answer prompt" in told
    assert "--metric contains" in told
    exact = refused_for_form("em", 0.1, 0.9)
    assert exact is not None
    assert "--metric short_contains" in exact


@pytest.mark.parametrize(("score", "contains"), [(0.0, 0.0), (0.6, 0.65), (1.0, 1.0)])
def test_nothing_is_told_where_form_decides_of_few(score: float, contains: float) -> None:
    assert all(refused_for_form(metric, score, contains) is None for metric in METRICS)


def test_metrics_that_take_any_form_tell_nothing() -> None:
    for metric in ("f1", "contains", "llm_judge", "mine:score"):
        assert refused_for_form(metric, 0.0, 0.9) is None
