"""Which questions become traces: one set for both sides, in which the mean of the test's scores is the run's score."""

from collections import Counter
from statistics import fmean

import pytest
from judged_cases import ANSWER, seen_case

from experiments.mlflow_tracking.case_traces import QuestionSet, question_set
from experiments.runs.seen_cases import SeenCase
from optimizer.evaluation.scores import SplitName


def cases(right: set[int], count: int, split: SplitName = "test", first: int = 0) -> list[SeenCase]:
    return [
        seen_case(n, ANSWER if n in right else "unknown", split=split, question=f"Where was Mara on day {n}?")
        for n in range(first, first + count)
    ]


def keys(side: tuple[SeenCase, ...]) -> list[str]:
    return [seen.case.question.id for seen in side]


def test_both_sides_have_the_same_questions_with_all_of_the_test_and_its_mean_is_the_score() -> None:
    baseline = [*cases({0}, 6), *cases({100, 101}, 8, "train", 100)]
    champion = [*cases({0, 1, 2, 3}, 6), *cases({100, 103}, 8, "train", 100)]
    chosen = question_set(baseline, champion, most=9)
    assert keys(chosen.baseline) == keys(chosen.champion)
    assert set(keys(chosen.baseline)) >= {f"q{n}" for n in range(6)}
    # Then those that flipped: 101 was right, 103 wrong.
    assert {"q101", "q103"} < set(keys(chosen.baseline))
    tested = [seen for seen in chosen.champion if chosen.metric("f1", seen.split) == "f1"]
    assert fmean(seen.case.judgement.score for seen in tested) == pytest.approx(4 / 6)
    assert chosen.metric("f1", "train") == "f1 (train, 3 of 8)"


def test_what_only_one_side_answered_is_in_neither() -> None:
    baseline = [*cases({0}, 4), *cases({100}, 4, "train", 100)]
    chosen = question_set(baseline, cases({0, 1}, 4), most=100)
    assert keys(chosen.baseline) == keys(chosen.champion) == ["q0", "q1", "q2", "q3"]


def test_a_champion_that_is_the_baseline_has_no_cases_of_its_own() -> None:
    baseline = [*cases({0}, 4), *cases({100}, 4, "train", 100)]
    chosen = question_set(baseline, baseline, most=100)
    assert (len(chosen.baseline), chosen.champion) == (8, ())
    assert chosen.metric("f1", "train") == "f1 (train)"


def test_a_test_that_has_no_room_is_cut_in_proportion_and_its_mean_has_another_name() -> None:
    baseline, champion = cases(set(range(0, 40, 4)), 40), cases(set(range(0, 40, 2)), 40)
    chosen = question_set(baseline, champion, most=20)
    assert Counter(seen.case.passed for seen in chosen.baseline) == {True: 5, False: 15}
    assert Counter(seen.case.passed for seen in chosen.champion) == {True: 10, False: 10}
    assert chosen.metric("f1", "test") == "f1 (test, 20 of 40)"


def test_questions_put_in_the_same_words_have_titles_of_their_own_and_others_their_words_alone() -> None:
    alike = [seen_case(n, ANSWER) for n in range(3)]
    other = cases({9}, 1, first=9)
    twice = [seen_case(n, ANSWER, question="Why?", conversation="c") for n in (20, 21)]
    chosen: QuestionSet = question_set([*alike, *other, *twice], [*alike, *other, *twice], most=100)
    titles = list(chosen.titles.values())
    assert len(set(titles)) == 6
    assert titles[0] == "Where does Mara live? · conv0"
    assert titles[3] == "Where was Mara on day 9?"
    assert titles[4] == "Why? · c · q20"
