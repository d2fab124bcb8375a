"""Local search: the better text wins on few inputs, nothing is scored on what it shows, and partners are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_world import world

from attribution.cases import Case
from attribution.judging.words import Judgement
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Outcome
from optimizer.gating.gate import FIRST_LOOK
from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.proposers.rewrites import Demonstration, Rewrite
from optimizer.racing.halving import LocalScore, alternating, compared, halved
from optimizer.racing.whole_demonstrations import demonstration_sets, with_demonstrations
from optimizer.search.joint_choice import (
    MOST,
    Combination,
    affordable_combinations,
    combinations_of,
    most_evaluations,
    raced,
)
from optimizer.search.local_search import _LocalRounds
from optimizer.search.portion import MARGIN, Portion
from optimizer.tuning.reserve import Affordable
from optimizer.tuning.results import LoopSettings
from tracing.errors import BudgetExceededError, ShareSpentError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Conversation
from tracing.systems.layouts import Item

CONVERSATIONS = world(train=12).train
SPEC = FactMemory.prompts["extract"]


def recorded(conversation: Conversation, number: int) -> RecordedInput:
    messages = (Item("messages", f"D1:{number}", "message", f"Anke: number {number}"),)
    return RecordedInput(f"{conversation.id}-{number}", SPEC, conversation, {"conversation": messages})


INPUTS = [recorded(conversation, number) for conversation in CONVERSATIONS[:4] for number in range(5)]


def shown(given: RecordedInput) -> Demonstration:
    return Demonstration(given, {"conversation": "Anke: My lorry is red."}, '{"facts": ["Anke\'s lorry is red."]}')


class Scripted:
    """Credits by text; counts what was measured."""

    def __init__(self, values: Mapping[str, float]) -> None:
        self.values, self.measured = values, list[tuple[str, str]]()

    def __call__(self, text: str, inputs: Sequence[RecordedInput]) -> list[Credit | None]:
        self.measured += [(text, given.key) for given in inputs]
        return [None if self.values[text] < 0 else Credit(self.values[text]) for _ in inputs]


def one(given: RecordedInput) -> float:
    return 1.0


def test_inputs_alternate_between_conversations_so_that_a_few_are_of_many() -> None:
    order = alternating(INPUTS, seed=1)
    assert sorted(each.key for each in order) == sorted(each.key for each in INPUTS)
    for start in range(0, len(order), 4):
        assert len({each.conversation.id for each in order[start : start + 4]}) == 4
    assert order == alternating(INPUTS, seed=1) != alternating(INPUTS, seed=2)


def test_only_what_is_ahead_meets_more_inputs() -> None:
    measure = Scripted({"champion": 0.5, **{f"arm{n}": n / 10 for n in range(10)}})
    rewrites = [Rewrite(f"arm{n}", "bank", "") for n in range(10)]
    (best, second), dropped = halved(rewrites, "champion", INPUTS, measure, one, [(4, 5), (8, 3), (20, 2)])
    assert (best.rewrite.text, second.rewrite.text) == ("arm9", "arm8")
    assert sorted(each.inputs for each in dropped) == [4] * 5 + [8] * 2 + [20]
    assert (best.score, best.gain, best.inputs) == pytest.approx((0.9, 0.4, 20))
    met = {rewrite.text: len({key for text, key in measure.measured if text == rewrite.text}) for rewrite in rewrites}
    assert [met[f"arm{n}"] for n in range(10)] == [4] * 5 + [8] * 2 + [20] * 3


def test_of_texts_with_equal_gains_those_go_on_whose_outputs_come_nearer_to_the_right_ones() -> None:
    near = {"champion": 0.4, "far": 0.1, "nearest": 0.6, "nearer": 0.5}

    def measure(text: str, inputs: Sequence[RecordedInput]) -> list[Credit | None]:
        return [Credit(0.5, near=near[text]) for _ in inputs]

    rewrites = [Rewrite(text, "bank", "") for text in near if text != "champion"]
    (best, second), _ = halved(rewrites, "champion", INPUTS, measure, one, [(4, 2)])
    assert (best.rewrite.text, second.rewrite.text) == ("nearest", "nearer")
    assert best.nearer == pytest.approx(0.2)


def test_what_people_wrote_is_measured_to_the_end_and_a_failed_call_counts_for_nobody() -> None:
    measure = Scripted({"champion": 0.5, "good": 0.9, "mine": 0.1, "failing": -1.0})
    rewrites = [Rewrite("mine", "hand", ""), Rewrite("good", "bank", ""), Rewrite("failing", "bank", "")]
    scored, (dropped,) = halved(rewrites, "champion", INPUTS, measure, one, [(4, 1), (8, 1)], spared=("hand",))
    assert [each.rewrite.text for each in scored] == ["good", "mine"]
    assert dropped.rewrite.text == "failing"
    failing = compared(rewrites[2], "champion", INPUTS, measure, one)
    assert (failing.inputs, failing.gain, failing.by_conversation) == (0, 0.0, {})


def test_a_text_is_not_scored_on_a_conversation_that_it_shows() -> None:
    rewrite = with_demonstrations(Rewrite(SPEC.text, "", ""), (shown(INPUTS[0]),))
    assert rewrite is not None
    assert "Anke's lorry is red." in rewrite.text
    assert not SPEC.contract.violations(rewrite.text)
    score = compared(rewrite, "champion", INPUTS, Scripted({"champion": 0.5, rewrite.text: 1.0}), one)
    assert score.inputs == 15
    assert INPUTS[0].conversation.id not in score.by_conversation


def test_demonstrations_of_a_set_come_from_different_conversations() -> None:
    sets = list(demonstration_sets([shown(given) for given in INPUTS[:12]], seed=0))
    assert {len(chosen) for chosen in sets} == {1, 2, 3}
    assert all(len({each.recorded.conversation.id for each in chosen}) == len(chosen) for chosen in sets)


def outcome(conversation: Conversation, score: float, tainted: str | None = None) -> Outcome:
    judgement = Judgement(score=score, em=score, f1=score, contains=score)
    cases = tuple(Case(conversation.id, question, "", judgement) for question in conversation.questions)
    return Outcome(conversation, () if tainted else cases, ExecutionGraph(), tainted=tainted)


CHAMPION = [outcome(conversation, 0.5) for conversation in CONVERSATIONS]


def scored(text: str, gain: float = 0.4, error: float = 0.0, source: str = "bank") -> LocalScore:
    return LocalScore(Rewrite(text, source, ""), 0.5 + gain, gain, 20, {}, error=error)


class Pipeline:
    """Scores of combinations by their texts; counts the conversations that each has met."""

    def __init__(self, values: Mapping[frozenset[str], float | None]) -> None:
        self.values, self.met = values, dict[frozenset[str], int]()

    def __call__(self, combination: Combination, against: Sequence[Outcome]) -> list[Outcome]:
        texts = frozenset(each.rewrite.text for each in combination.parts.values())
        self.met[texts] = self.met.get(texts, 0) + len(against)
        value = self.values[texts]
        failed = "a call failed" if value is None else None
        return [outcome(each.conversation, value or 0.0, failed) for each in against]


def test_texts_that_help_only_together_are_found() -> None:
    finalists = {"extract": [scored("e1"), scored("e2")], "answer": [scored("a1")]}
    combinations = combinations_of(finalists)
    assert [set(each.parts) for each in combinations] == [{"extract", "answer"}, {"extract"}, {"answer"}, {"extract"}]
    pipeline = Pipeline(
        {frozenset({"e1", "a1"}): 0.8, frozenset({"e1"}): 0.4, frozenset({"a1"}): 0.5, frozenset({"e2"}): 0.6}
    )
    ranked = raced(combinations, CHAMPION, pipeline)
    assert {name: each.rewrite.text for name, each in ranked[0].parts.items()} == {"extract": "e1", "answer": "a1"}
    # Six of six conversations gain, which is sure enough at half of them.
    assert (ranked[0].gain, len(ranked[0].outcomes)) == (pytest.approx(0.3), len(CHAMPION) // 2)
    assert ranked[0].decision is not None
    assert ranked[0].decision.accepted
    assert len(ranked) == len(combinations)
    assert pipeline.met[frozenset({"e1"})] == pipeline.met[frozenset({"a1"})] == FIRST_LOOK


def test_a_gain_that_chance_may_have_made_goes_alone_and_last() -> None:
    finalists = {
        "decide": [scored("d1", 0.33, 0.33)],
        "answer": [scored("a1", 0.3, 0.1)],
        "extract": [scored("e1", 0.3, 0.1), scored("e2", 0.25, 0.1)],
    }
    combinations = combinations_of(finalists, {"extract": 0.7, "answer": 0.25, "decide": 0.05})
    chosen = [{name: each.rewrite.text for name, each in one.parts.items()} for one in combinations]
    assert chosen == [{"extract": "e1", "answer": "a1"}, {"extract": "e1"}, {"extract": "e2"}, {"answer": "a1"}]
    by_hand = {"extract": [scored("mine", -0.2, 0.3, "hand")], "answer": [scored("a1", 0.3, 0.1)]}
    assert set(combinations_of(by_hand)[0].parts) == {"extract", "answer"}


def test_a_race_of_one_combination_is_of_texts_that_surely_gain() -> None:
    finalists = {"extract": [scored("e1", 0.3, 0.1)], "answer": [scored("a1", 0.15, 0.1)]}
    assert set(combinations_of(finalists)[0].parts) == {"extract", "answer"}
    assert set(combinations_of(finalists, most=2)[0].parts) == {"extract", "answer"}
    (only,) = combinations_of(finalists, most=1)
    assert set(only.parts) == {"extract"}
    (both,) = combinations_of({**finalists, "answer": [scored("a1", 0.25, 0.1)]}, most=1)
    assert set(both.parts) == {"extract", "answer"}


def test_the_error_of_a_gain_is_that_of_its_conversations() -> None:
    same = compared(Rewrite("better", "bank", ""), "champion", INPUTS, Scripted({"champion": 0.5, "better": 0.9}), one)
    assert same.error == pytest.approx(0)
    assert same.expected == pytest.approx(same.gain)
    first = [given for given in INPUTS if given.conversation.id == INPUTS[0].conversation.id]
    alone = compared(Rewrite("better", "bank", ""), "champion", first, Scripted({"champion": 0.5, "better": 0.9}), one)
    assert alone.error == 1
    assert 0 < alone.expected < alone.gain / 10


def test_what_cannot_be_scored_or_is_not_ahead_never_wins() -> None:
    combinations = [Combination({"extract": scored(text)}) for text in ("broken", "same", "worse")]
    values = {frozenset({"broken"}): None, frozenset({"same"}): 0.5, frozenset({"worse"}): 0.2}
    ranked = raced(combinations, CHAMPION, Pipeline(values))
    assert not any(each.decision is None or each.decision.accepted for each in ranked)
    assert ranked[-1].gain is None
    assert raced([], CHAMPION, Pipeline({})) == []


def test_a_race_is_of_as_many_combinations_as_can_be_afforded_and_of_one_at_least() -> None:
    assert affordable_combinations(24, None) == MOST == affordable_combinations(24, 1e9)
    assert affordable_combinations(24, 0.0) == 1
    for evaluations in range(24, most_evaluations(24)):
        count = affordable_combinations(24, evaluations)
        assert most_evaluations(24, count) <= evaluations < most_evaluations(24, count + 1)


class Purse:
    """A tuning of which only the budget matters, in conversations; one execution costs a tenth of one.

    Another text of the answer prompt costs half a conversation, one of the extraction prompt a whole one.
    """

    validation = CONVERSATIONS[:6]

    def __init__(self, left: float | None, rounds: int) -> None:
        self.left, self.settings = left, LoopSettings(rounds=rounds)

    def affordable(self, prompts: Sequence[str] = ("extract",)) -> Affordable | None:
        if self.left is None:
            return None
        left = max(0.0, self.left)
        executions = {"answer": 10 * left}
        return Affordable(left if "extract" in prompts else 2 * left, executions)


VALIDATION = {conversation.id for conversation in Purse.validation}


ALL = ["extract", "answer"]


def opened(purse: Purse, n: int, prompts: Sequence[str] = ("extract",)) -> Portion:
    return Portion(purse, n, len(CHAMPION), prompts)  # type: ignore[arg-type]


def to_decide(order: Sequence[Outcome], combinations: int) -> float:
    """What a race takes that its winner can become the champion after."""
    met = {outcome.conversation.id for outcome in order}
    return most_evaluations(len(order), combinations) + len(VALIDATION - met)


@pytest.mark.parametrize("prompts", [1, 3])
@pytest.mark.parametrize("rounds", [1, 3, 50])
@pytest.mark.parametrize("budget", [8.0, 14.0, 25.0, 45.0, 100.0, 1000.0])
def test_rounds_spend_no_more_than_their_portions_and_each_can_decide(budget: float, rounds: int, prompts: int) -> None:
    purse, alone = Purse(budget, rounds), most_evaluations(len(CHAMPION), 1)
    for n in range(1, rounds + 1):
        assert purse.left is not None
        before = purse.left
        try:
            portion = opened(purse, n)
        except BudgetExceededError:
            assert before <= MARGIN * len(VALIDATION)
            break
        for _ in range(prompts):
            calls = portion.executions("answer", 1 / prompts)
            assert calls is not None
            assert calls > 0
            purse.left -= calls / 10
        order, combinations = portion.race(CHAMPION[::-1], ALL)
        assert combinations >= 1
        purse.left -= to_decide(order, combinations)
        assert purse.left >= -1e-9
        # With enough for this round and another one, another one is left.
        if n < rounds and before >= 4 * alone:
            assert purse.left >= alone


def test_a_race_that_cannot_afford_the_pool_is_over_the_validation_conversations_first() -> None:
    portion = opened(Purse(10.0, 1), 1)
    whole, few = portion.race(CHAMPION[3:9], ALL), portion.race(CHAMPION[::-1], ALL)
    # Those of the validation that the race does not meet are reckoned with too.
    assert whole.order == CHAMPION[3:9]
    assert to_decide(*whole) == 9
    assert few.combinations == 1
    assert {each.conversation.id for each in few.order[: len(VALIDATION)]} == VALIDATION
    assert to_decide(*few) == len(few.order) == 10 < len(CHAMPION)


def test_what_a_winner_could_not_become_the_champion_after_is_not_raced() -> None:
    purse = Purse(20.0, 1)
    portion = opened(purse, 1)
    purse.left = len(VALIDATION) - 0.5
    assert portion.race(CHAMPION, ALL) == ([], 0)


def test_a_round_that_cannot_pay_for_every_prompt_is_for_those_whose_texts_take_less() -> None:
    enough, little = opened(Purse(8.0, 1), 1, ALL), opened(Purse(7.0, 1), 1, ALL)
    assert (set(enough.prompts), set(little.prompts)) == ({"extract", "answer"}, {"answer"})
    # Twice as many can be evaluated as with a new memory each; what the validation takes is kept.
    assert little.executions("answer", 1.0) == pytest.approx(70 * (1 - MARGIN * len(VALIDATION) / 14))
    assert [len(little.race(CHAMPION, prompts).order) for prompts in (["answer"], ALL)] == [len(CHAMPION), 7]
    with pytest.raises(ShareSpentError, match=r"7\.4 conversations"):
        opened(Purse(3.7, 1), 1, ALL)


def test_without_a_limit_a_round_is_whole_and_with_nothing_left_it_does_not_begin() -> None:
    whole = opened(Purse(None, 3), 1)
    assert (whole.executions("answer", 1.0), whole.race(CHAMPION, ALL)) == (None, (CHAMPION, MOST))
    with pytest.raises(BudgetExceededError, match="reserved for the test"):
        opened(Purse(0.0, 3), 2)
    with pytest.raises(ShareSpentError, match=r"7\.5 conversations, too few to decide .* the 6 of validation"):
        opened(Purse(MARGIN * len(VALIDATION), 3), 2)


def test_the_study_of_a_round_knows_every_conversation_also_those_that_the_champion_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A text that is crowned in the round may show others, and then settings race on those too."""
    known: list[str] = []

    class Study:
        def __init__(self, tuning: object, this_round: object, finalists: object, reference: Sequence[Outcome]) -> None:
            known.extend(each.conversation.id for each in reference)

        def __enter__(self) -> Study:
            return self

        def __exit__(self, *error: object) -> None:
            pass

    monkeypatch.setattr("optimizer.search.local_search.JointChoice", Study)
    outcomes = {"train": CHAMPION[:3], "validation": CHAMPION[3:5]}
    tuning: Any = SimpleNamespace(baseline={}, variants=None, outcomes=outcomes.__getitem__)
    portion = opened(Purse(None, 1), 1)
    _LocalRounds(tuning)._choose(SimpleNamespace(n=1), {}, CHAMPION[:2], {}, portion)  # type: ignore[arg-type]
    assert known == [each.conversation.id for each in CHAMPION[:5]]
