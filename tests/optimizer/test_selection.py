from dataclasses import replace

import pytest

from attribution.signals import Signal
from optimizer.search.selection import TRUST, Edit, choose, expected_gains, shares_of
from tracing.systems.prompts import Contract, PromptSpec

PROMPTS = {
    name: PromptSpec(name, "{x}", name, Contract(frozenset({"x"})), "", True)
    for name in ("extract", "decide", "answer")
}


def signal(prompt: str | None, loss: float, fixable: bool = True) -> Signal:
    return Signal(
        operation=prompt or "retrieve",
        prompt=prompt,
        share=loss,
        share_ci=(0.0, 1.0),
        failures=round(100 * loss),
        loss=loss,
        error_types={},
        cases=(),
        fixable=fixable,
    )


SIGNALS = [signal("extract", 0.3), signal("answer", 0.1), signal(None, 0.5, fixable=False)]


def test_the_prompt_with_the_most_fixable_loss_is_edited_first() -> None:
    choice = choose(PROMPTS, SIGNALS)
    assert choice is not None
    assert choice.prompt == "extract"
    assert choice.signal is SIGNALS[0]


def test_loss_that_no_prompt_can_mend_draws_no_edit() -> None:
    choice = choose(PROMPTS, [signal("answer", 0.1), signal("decide", 0.9, fixable=False)])
    assert choice is not None
    assert choice.prompt == "answer"


def test_a_prompt_answers_for_its_part_of_what_steps_without_a_prompt_lose() -> None:
    beside = [replace(signal("decide", 0.05), beside=0.4), signal("extract", 0.3), signal("answer", 0.1)]
    gains = expected_gains(PROMPTS, beside)
    assert gains["decide"] - gains["extract"] == pytest.approx(TRUST * (0.45 - 0.3))


def test_a_prompt_is_blamed_for_no_more_than_it_lost_on_its_recorded_inputs() -> None:
    plain = expected_gains(PROMPTS, SIGNALS)
    assert expected_gains(PROMPTS, SIGNALS, lost={"extract": 0.3, "answer": 0.5}) == pytest.approx(plain)
    bounded = expected_gains(PROMPTS, SIGNALS, lost={"extract": 0.1})
    assert sum(bounded.values()) == pytest.approx(sum(plain.values()))
    assert bounded["extract"] - bounded["decide"] == pytest.approx(TRUST * 0.1)
    assert bounded["answer"] > plain["answer"]


def test_a_stubborn_prompt_does_not_starve_the_others() -> None:
    history: list[Edit] = []
    for _ in range(8):
        choice = choose(PROMPTS, SIGNALS, history)
        assert choice is not None
        history.append(Edit(choice.prompt, accepted=False))
    assert {edit.prompt for edit in history} == set(PROMPTS)
    assert [edit.prompt for edit in history].count("extract") > 2


def test_an_accepted_edit_clears_the_failures_before_it() -> None:
    failed = [Edit("extract", False)] * 5
    before = choose(PROMPTS, SIGNALS, failed)
    after = choose(PROMPTS, SIGNALS, [*failed, Edit("extract", True)])
    assert before is not None
    assert after is not None
    assert (before.prompt, after.prompt) == ("answer", "extract")


def test_ties_are_broken_by_the_seed_alone() -> None:
    picks = [choose(PROMPTS, [], seed=seed) for seed in range(30)]
    assert {pick.prompt for pick in picks if pick} == set(PROMPTS)
    assert picks == [choose(PROMPTS, [], seed=seed) for seed in range(30)]


def test_without_prompts_there_is_nothing_to_choose() -> None:
    assert choose({}, SIGNALS) is None


GAINS = {"extract": 0.3, "decide": 0.01, "answer": 0.2}


def test_each_selector_shares_a_round_among_the_prompts_in_its_way() -> None:
    by_blame = shares_of("blame", GAINS, 1, 0)
    assert list(by_blame) == ["extract", "answer"]
    assert by_blame["extract"] > by_blame["answer"]
    assert list(shares_of("blame", GAINS, 1, 0, least=0.0)) == ["extract", "answer", *(GAINS.keys() - by_blame.keys())]
    assert [list(shares_of("round-robin", GAINS, n, 0)) for n in (1, 2, 3, 4)] == [
        [each] for each in (*GAINS, "extract")
    ]
    assert sum(shares_of("uniform", GAINS, 1, 0).values()) == pytest.approx(1)
    assert set(shares_of("all", GAINS, 1, 0).values()) == {1.0}
    drawn = [tuple(shares_of("random", GAINS, 1, seed)) for seed in range(20)]
    assert set(drawn) == {(name,) for name in GAINS}
    assert drawn == [tuple(shares_of("random", GAINS, 1, seed)) for seed in range(20)]
    assert shares_of("blame", {}, 1, 0) == {}


def test_without_any_loss_prompts_share_alike() -> None:
    assert shares_of("blame", dict.fromkeys(GAINS, 0.0), 1, 0) == dict.fromkeys(GAINS, pytest.approx(1 / 3))


def test_a_loop_that_edits_one_prompt_a_round_follows_the_selector_too() -> None:
    turns: list[Edit] = []
    for _ in range(4):
        choice = choose(PROMPTS, SIGNALS, turns, selector="round-robin")
        assert choice is not None
        turns.append(Edit(choice.prompt, accepted=False))
    assert [edit.prompt for edit in turns] == ["extract", "decide", "answer", "extract"]
