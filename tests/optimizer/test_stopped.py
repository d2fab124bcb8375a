from typing import get_args

import pytest

from optimizer.tuning.stopped import StopKind, Stopped

DETAILS = {
    "patience": "3",
    "search-calls": "22 calls are made",
    "budget": "the remaining calls: kept",
    "own": "all tried",
}


@pytest.mark.parametrize("kind", get_args(StopKind))
def test_a_sentence_that_is_read_gives_the_reason_that_it_was_made_of(kind: StopKind) -> None:
    stopped = Stopped(kind, DETAILS.get(kind, "no such model" if kind in ("error", "fault") else ""))
    assert Stopped.read(str(stopped)) == stopped


@pytest.mark.parametrize(
    ("sentence", "finished", "by_budget", "heading"),
    [
        ("running", False, False, "running"),
        ("interrupted", False, False, "interrupted"),
        ("error: no such model", False, False, "error"),
        ("fault: KeyError", False, False, "fault"),
        ("budget: search.calls: 22 calls are made", True, True, "budget"),
        ("budget: the budget of 2 calls", True, True, "budget"),
        ("10 rounds in a row brought no better prompts", True, False, "10 rounds in a row brought no better prompts"),
        ("mine: all tried", True, False, "mine"),
    ],
)
def test_sentences_of_earlier_files_say_as_much(sentence: str, finished: bool, by_budget: bool, heading: str) -> None:
    stopped = Stopped.read(sentence)
    assert str(stopped) == sentence
    assert (stopped.finished, stopped.by_budget, stopped.heading) == (finished, by_budget, heading)


@pytest.mark.parametrize("returned", ["error: no better text", Stopped("interrupted"), "running"])
def test_a_search_that_returned_has_finished_whatever_it_says(returned: Stopped | str) -> None:
    stopped = Stopped.returned(returned)
    assert Stopped.read(str(stopped)) == stopped
    assert stopped.finished
    assert str(returned) in str(stopped)
