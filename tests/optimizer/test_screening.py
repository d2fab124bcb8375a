from collections.abc import Callable

from marked_outcomes import outcomes

from optimizer.evaluation import Outcome
from optimizer.examples import Example
from optimizer.results import Attempt
from optimizer.screening import SCREENED, hardest, race

BATCH = outcomes("+---", "++--")


def attempts(*texts: str) -> dict[str, Attempt]:
    return {text: Attempt("answer", "bank", "", text) for text in texts}


def scripted(**rows: tuple[str, ...]) -> tuple[Callable[[Attempt, Outcome], Outcome], list[tuple[str, str]]]:
    """Outcomes by attempt and conversation, and what was measured, in order; `x` is a failed build."""
    measured: list[tuple[str, str]] = []

    def measure(attempt: Attempt, reference: Outcome) -> Outcome:
        name = reference.conversation.id
        measured.append((attempt.text, name))
        row = rows[attempt.text][int(name[1:])]
        return outcomes(row, tainted="cut" if row == "x" else None)[0]

    return measure, measured


def failed_in(*places: int) -> list[Example]:
    return [Example(BATCH[place].cases[0], None, {}, "") for place in places]


def test_the_mean_gain_over_the_conversations_is_noted() -> None:
    measure, _ = scripted(good=("++--", "++++"), same=("+---", "++--"))
    raced = race(attempts("good", "same"), BATCH, measure)
    assert {text: attempt.screening for text, attempt in raced.items()} == {"good": 0.375, "same": 0.0}


def test_who_falls_behind_runs_no_further() -> None:
    measure, measured = scripted(bad=("----", "++++"), good=("++--", "++++"))
    raced = race(attempts("bad", "good"), BATCH, measure)
    assert measured == [("bad", "c0"), ("good", "c0"), ("good", "c1")]
    assert raced["bad"].screening == -0.25


def test_an_attempt_that_cannot_be_scored_has_no_gain() -> None:
    measure, measured = scripted(late=("++++", "x"), early=("x", "++++"))
    raced = race(attempts("late", "early"), BATCH, measure)
    assert [attempt.screening for attempt in raced.values()] == [None, None]
    assert ("early", "c1") not in measured


def test_screened_are_the_conversations_where_the_prompt_failed_most_then_the_lowest_scores() -> None:
    train = outcomes("++++", "+---", "++--", "+---")
    assert hardest(train, failed_in(0, 0, 1), seed=0)[0] is train[0]
    assert {outcome.conversation.id for outcome in hardest(train, [], seed=0)} == {"c1", "c3"}
    assert len(hardest(train, [], seed=0)) == SCREENED
    assert hardest(train, [], seed=3) == hardest(train, [], seed=3)
