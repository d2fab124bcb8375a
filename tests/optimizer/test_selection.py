from attribution.signals import Signal
from optimizer.search.selection import Edit, choose
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
