"""The queue of comparisons: what is clearly ahead goes on at once, partners are found, and nothing is begun twice."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_world import world

from attribution.cases import Case
from attribution.judging.words import Judgement
from optimizer.evaluation.evaluator import Outcome
from optimizer.proposers.rewrites import HAND, Rewrite
from optimizer.racing.beliefs import Belief, Prospect
from optimizer.racing.local_scores import LocalScore, usual_error
from optimizer.search.comparisons import Comparisons
from optimizer.search.joint_choice import MOST, Combination
from optimizer.search.measured_texts import BATCH, Arm
from optimizer.search.prompt_search import LocalStep
from optimizer.search.side_by_side import raced
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Conversation

CONVERSATIONS = world(train=24).train


def scored_outcome(conversation: Conversation, score: float, tainted: str | None = None) -> Outcome:
    judgement = Judgement(score=score, em=score, f1=score, contains=score)
    cases = tuple(Case(conversation.id, question, "", judgement) for question in conversation.questions)
    return Outcome(conversation, () if tainted else cases, ExecutionGraph(), tainted=tainted)


CHAMPION = [scored_outcome(conversation, 0.5) for conversation in CONVERSATIONS]
CALLS = {"extract": 19.0, "answer": 10.0}


def scored(text: str, gain: float, inputs: int = 20, source: str = "bank") -> LocalScore:
    return LocalScore(Rewrite("extract", text, source, ""), 0.5 + gain, gain, inputs, {}, error=usual_error(inputs))


class Texts:
    """One prompt's texts with what each gains on recorded inputs; they are measured a few inputs at a time."""

    room, hope = 0.5, 1.0
    waiting = frozenset[str]()
    """Texts that may not meet conversations before they have met 24 inputs."""

    def __init__(self, gains: Mapping[str, float], met: int = 0, source: str = "bank") -> None:
        self.gains, self.source, self.fresh = gains, source, True
        self.met = dict.fromkeys(gains, met)

    @property
    def scores(self) -> list[LocalScore]:
        return [scored(text, self.gains[text], met, self.source) for text, met in self.met.items() if met]

    prior = Belief(0.0, 0.2)

    def of_next(self, shown: Mapping[str, float]) -> list[list[Prospect]]:
        return [self.prior.measured(usual_error(BATCH), 1.0)]

    def arms(self) -> list[Arm]:
        arms = [Arm(each, self.prior.after(each.gain, each.noise)) for each in self.scores]
        return sorted((arm for arm in arms if arm.by_hand or arm.scored.gain > 0), key=lambda arm: -arm.belief.mean)

    def ready(self, least: float, shown: Collection[str]) -> set[str]:
        return {text for text, met in self.met.items() if text not in self.waiting or met >= 24}

    def steps(self, least: float, shown: Mapping[str, float]) -> Iterator[LocalStep]:
        beliefs = {each.rewrite.text: self.prior.after(each.gain, each.noise) for each in self.scores}
        for text, met in self.met.items():
            belief = beliefs.get(text, self.prior)
            if met < 30 and text not in shown:
                yield LocalStep(
                    belief.measured(usual_error(BATCH), 1.0), [Rewrite("", text, "", "")], BATCH, again=met > 0
                )

    def take(self, step: LocalStep) -> None:
        for rewrite in step.rewrites:
            self.met[rewrite.text] += step.inputs


class Pipeline:
    """Scores of combinations by their texts; counts the conversations that each has met."""

    def __init__(self, values: Mapping[frozenset[str], float | None]) -> None:
        self.values, self.met = values, dict[frozenset[str], int]()

    def evaluate(self, combination: Combination, against: Sequence[Outcome]) -> list[Outcome]:
        texts = frozenset(each.rewrite.text for each in combination.parts.values())
        self.met[texts] = self.met.get(texts, 0) + len(against)
        value = self.values.get(texts, 0.5)
        failed = "a call failed" if value is None else None
        return [scored_outcome(each.conversation, value or 0.0, failed) for each in against]


def comparisons(limited: bool = True, calls: Mapping[str, float] = CALLS) -> Comparisons:
    tuning: Any = SimpleNamespace(
        validation=CONVERSATIONS[:11],
        prompts=CALLS,
        limited=limited,
        calls_with=lambda names: max(calls[name] for name in names),
    )
    return Comparisons(tuning)


def compared(
    queue: Comparisons,
    pipeline: Pipeline,
    searches: Mapping[str, Texts],
    champion: Sequence[Outcome] = CHAMPION,
    loss: float = 0.2,
    last: bool = False,
) -> Combination | None:
    losses = dict.fromkeys(searches, loss)
    joint: Any = pipeline
    return queue.of_texts(joint, searches, losses, lambda combination: champion, last=last)  # type: ignore[arg-type]


def texts_of(combination: Combination | None) -> set[str]:
    assert combination is not None
    return {each.rewrite.text for each in combination.parts.values()}


def test_a_text_that_is_clearly_ahead_meets_conversations_before_any_other_is_measured_twice() -> None:
    texts = Texts({"x0": 0.0, "x1": 0.45, **{f"x{n}": 0.0 for n in range(2, 24)}})
    pipeline = Pipeline({frozenset({"x1"}): 0.7})
    assert texts_of(compared(comparisons(), pipeline, {"extract": texts})) == {"x1"}
    # Six of six conversations gain, which is enough.
    assert pipeline.met == {frozenset({"x1"}): 6}
    assert max(met for text, met in texts.met.items() if text != "x1") == BATCH


def test_what_gained_on_recorded_inputs_is_crowned_before_conversations_alone_would_show_it() -> None:
    # Two of three conversations gain, so that six leave one-sided p at 0.125.
    champion = [scored_outcome(each, 0.65 if at % 3 else 1.0) for at, each in enumerate(CONVERSATIONS)]
    met = []
    for gain, inputs in ((0.45, 20), (0.1, 20)):
        pipeline = Pipeline({frozenset({"x"}): 0.85})
        searches = {"extract": Texts({"x": gain}, inputs)}
        assert texts_of(compared(comparisons(), pipeline, searches, champion, last=True)) == {"x"}
        met.append(pipeline.met[frozenset({"x"})])
    assert met[0] == 6 < met[1]


def test_a_text_that_waits_is_measured_further_and_other_prompts_do_not_go_first_for_it() -> None:
    extract, answer = Texts({"e0": 0.4, "e1": 0.0}), Texts({"a": -0.2}, 3)
    extract.waiting = frozenset({"e0", "e1"})
    pipeline = Pipeline({frozenset({"e0"}): 0.7})
    searches = {"extract": extract, "answer": answer}
    assert texts_of(compared(comparisons(), pipeline, searches, last=True)) == {"e0"}
    assert extract.met["e0"] >= 24
    assert list(pipeline.met) == [frozenset({"e0"})]


def test_what_would_still_have_to_meet_conversations_waits_for_what_is_nearer_to_being_crowned() -> None:
    searches = {"extract": Texts({"e": 0.4}, 30), "answer": Texts({f"a{n}": 0.0 for n in range(12)})}
    assert texts_of(compared(comparisons(), Pipeline({frozenset({"e"}): 0.7}), searches)) == {"e"}
    assert set(searches["answer"].met.values()) == {0}


def test_where_nothing_is_ahead_nothing_meets_a_conversation() -> None:
    texts, pipeline = Texts({f"x{n}": -0.2 for n in range(8)}), Pipeline({})
    assert compared(comparisons(), pipeline, {"extract": texts}) is None
    assert pipeline.met == {}
    assert min(texts.met.values()) >= BATCH


def test_a_prompt_of_which_nothing_was_measured_has_its_turn_before_what_gains_little_meets_conversations() -> None:
    searches = {"extract": Texts({f"e{n}": 0.03 for n in range(4)}, 28), "answer": Texts({"a": 0.6})}
    pipeline = Pipeline({frozenset({"a"}): 0.8})
    assert texts_of(compared(comparisons(), pipeline, searches)) == {"a"}
    assert set(pipeline.met) == {frozenset({"a"})}


def test_a_text_that_promises_little_waits_until_the_others_met_recorded_inputs_which_cost_a_call_each() -> None:
    texts = Texts({"weak": 0.2, **{f"x{n}": 0.0 for n in range(8)}, "good": 0.6})
    texts.met["weak"] = 30
    pipeline = Pipeline({frozenset({"good"}): 0.8})
    assert texts_of(compared(comparisons(), pipeline, {"extract": texts})) == {"good"}
    assert set(pipeline.met) == {frozenset({"good"})}


def test_a_round_ends_once_new_texts_promise_more_and_the_last_round_does_not() -> None:
    def met(last: bool) -> int:
        texts, pipeline = Texts({f"x{n}": 0.0 for n in range(4)} | {"y": 0.01}, 30), Pipeline({})
        compared(comparisons(), pipeline, {"extract": texts}, last=last)
        return len(pipeline.met)

    assert met(last=False) == 0
    assert met(last=True) > 0


def test_where_no_new_texts_follow_few_inputs_tell_that_nothing_gains() -> None:
    inputs = []
    for last, limited in ((True, True), (False, False)):
        texts = Texts({f"x{n}": -0.1 for n in range(8)})
        assert compared(comparisons(limited), Pipeline({}), {"extract": texts}, last=last) is None
        inputs.append(sum(texts.met.values()))
    assert max(inputs) <= 8 * 2 * BATCH


def test_texts_that_help_only_together_are_found() -> None:
    searches = {"extract": Texts({"e": 0.4}, 30), "answer": Texts({"a": 0.4}, 30)}
    pipeline = Pipeline({frozenset({"e", "a"}): 0.8, frozenset({"e"}): 0.4, frozenset({"a"}): 0.4})
    assert texts_of(compared(comparisons(), pipeline, searches)) == {"e", "a"}


def test_a_gain_that_chance_may_have_made_goes_alone() -> None:
    searches = {"extract": Texts({"e": 0.4}, 30), "answer": Texts({"a": 0.02}, 30)}
    pipeline = Pipeline({frozenset({"e"}): 0.8})
    assert texts_of(compared(comparisons(), pipeline, searches)) == {"e"}
    assert frozenset({"e", "a"}) not in pipeline.met


def test_what_cannot_be_scored_or_is_not_ahead_never_wins_and_a_round_has_few_challengers() -> None:
    texts = Texts({f"x{n}": 0.3 for n in range(8)}, 30)
    pipeline = Pipeline({frozenset({"x0"}): None, frozenset({"x1"}): 0.4})
    queue = comparisons()
    assert compared(queue, pipeline, {"extract": texts}) is None
    assert len(queue.met) == len(pipeline.met) == MOST
    assert not any(each.accepted for each in queue.met.values())
    met = dict(pipeline.met)
    compared(queue, pipeline, {"extract": texts})
    # What was decided is not compared again with the same champion; others have their turn.
    assert {name: pipeline.met[name] for name in met} == met
    assert len(pipeline.met) == 2 * MOST


def test_what_people_wrote_meets_conversations_first_whatever_it_gains_on_recorded_inputs() -> None:
    searches = {"extract": Texts({"e": 0.4}, 30), "answer": Texts({"mine": -0.2}, 30, HAND)}
    pipeline = Pipeline({frozenset({"mine"}): 0.7, frozenset({"e"}): 0.8})
    assert texts_of(compared(comparisons(), pipeline, searches)) == {"mine"}


def test_a_race_of_several_is_won_by_the_best_that_the_gate_accepts() -> None:
    combinations = [Combination({"extract": scored(text, 0.2)}) for text in ("broken", "worse", "good", "better")]
    values = {"broken": None, "worse": 0.2, "good": 0.7, "better": 0.8}
    pipeline = Pipeline({frozenset({text}): value for text, value in values.items()})
    ranked = raced(combinations, CHAMPION, pipeline.evaluate)
    assert texts_of(ranked[0]) == {"better"}
    assert ranked[0].accepted
    assert len(ranked) == len(combinations)
    assert raced([], CHAMPION, pipeline.evaluate) == []
    nothing = raced(combinations[:2], CHAMPION, pipeline.evaluate)
    assert not any(each.accepted for each in nothing)
    assert nothing[-1].gain is None


def test_where_nothing_new_is_left_a_budget_is_used_on_what_promises_little() -> None:
    texts, pipeline = Texts({f"x{n}": -0.2 for n in range(4)}), Pipeline({})
    compared(comparisons(), pipeline, {"extract": texts})
    promising = dict(texts.met)
    texts.fresh = False
    compared(comparisons(), pipeline, {"extract": texts})
    assert all(met > promising[text] for text, met in texts.met.items())


def test_a_round_in_which_nothing_was_asked_counts_as_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, queue = Texts({}), comparisons()
    monkeypatch.setattr(texts, "steps", lambda *given: [LocalStep(texts.prior.measured(0.1, 1.0), [], BATCH)])
    monkeypatch.setattr(texts, "take", lambda step: monkeypatch.setattr(texts, "steps", lambda *given: []))
    assert compared(queue, Pipeline({}), {"extract": texts}) is None
    assert queue.idle


def test_after_a_round_in_which_nothing_was_worth_a_call_a_budget_is_used() -> None:
    dear = {"extract": 400.0}
    queue, texts, pipeline = comparisons(calls=dear), Texts({f"x{n}": 0.2 for n in range(4)}), Pipeline({})
    assert not queue.idle
    compared(queue, pipeline, {"extract": texts}, loss=0.01)
    assert queue.idle
    assert set(texts.met.values()) == {0}
    compared(queue, pipeline, {"extract": texts}, loss=0.01)
    assert not queue.idle
    assert min(texts.met.values()) >= BATCH
    unlimited, texts = comparisons(False, dear), Texts({f"x{n}": 0.2 for n in range(4)})
    for _ in range(3):
        compared(unlimited, pipeline, {"extract": texts}, loss=0.01)
    assert unlimited.idle
    assert set(texts.met.values()) == {0}
