"""One prompt's search: parents have something others lack, and every estimate covers what is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from optimizer.objectives.objective import Credit
from optimizer.proposers.rewrites import HAND, Demonstration, Rewrite
from optimizer.proposers.template import add_instruction, take_apart
from optimizer.racing.beliefs import Belief, Venture, rate_of_measuring
from optimizer.racing.local_scores import PARENTS, LocalScore, parents_of
from optimizer.search.measured_texts import BATCH, USUAL_DEVIATION, USUAL_INPUTS, USUAL_ROOM, Arm
from optimizer.search.prompt_search import (
    ENOUGH_INPUTS,
    MISSES,
    REWRITES,
    TOGETHER,
    UNMEASURED_REWRITES,
    LocalStep,
    PromptSearch,
    ahead_of_others,
)


def scored(text: str, by_input: Mapping[str, float]) -> LocalScore:
    gain = sum(by_input.values()) / len(by_input)
    return LocalScore(Rewrite("answer", text, "bank", ""), 0.5 + gain, gain, len(by_input), {}, by_input)


def parents(*scores: LocalScore) -> list[str]:
    return [each.rewrite.text for each in parents_of(scores)]


def test_a_text_that_is_the_best_on_most_inputs_is_a_parent_before_one_that_is_good_everywhere() -> None:
    broad = scored("broad", {"a": 0.3, "b": 0.3, "c": 0.3})
    narrow = scored("narrow", {"a": 0.4, "b": 0.4, "c": -0.2})
    second = scored("second", {"a": 0.2, "b": 0.2, "c": 0.2})
    assert parents(broad, second, narrow) == ["narrow", "broad"]


def test_what_gains_nowhere_or_is_matched_everywhere_by_another_is_no_parent() -> None:
    assert parents(scored("worse", {"a": -0.1}), scored("same", {"a": 0.0})) == []
    assert parents(*(scored(str(n), {"a": n / 10}) for n in range(1, 6))) == ["5"]
    assert parents(scored("one", {"a": 0.5, "b": 0.0}), scored("twin", {"a": 0.5, "b": 0.0})) == ["one"]
    more = scored("more", {"a": 0.5, "b": 0.0, "c": 0.0})
    assert parents(scored("less", {"a": 0.5, "b": 0.0}), more) == ["more"]


def test_keeping_what_was_right_counts_and_a_text_that_breaks_more_than_it_mends_comes_later() -> None:
    breaks = scored("breaks", {"a": 1.0, "b": 1.0, "c": -1.0, "d": -1.0, "e": -1.0})
    keeps = scored("keeps", {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0, "e": 0.0})
    assert parents(breaks, keeps) == ["keeps", "breaks"]
    assert len(parents(*(scored(str(n), {"abcd"[n]: 1.0}) for n in range(4)))) == PARENTS


TEMPLATE = "Answer the question.\n\nMemories:\n{context}\nQuestion: {question}\nAnswer:"
VALUES = {"context": "Ann's cat is Tom", "question": "Ann's cat?"}
SHOWN = (Demonstration((), "", "c1"),)


INPUTS = 40
"""Recorded inputs, each of a conversation of its own."""


class Recorded:
    """What texts are credited with on recorded inputs: on a part of ten of them all, however few they met."""

    def __init__(self, parts: Mapping[str, int], right: int = 0) -> None:
        self.objectives = {"answer": SimpleNamespace(weight=lambda given: 1.0)}
        self.parts, self.met = parts, dict[tuple[str, str], Credit]()
        self.right = right

    def known_credits(self, prompt: str, text: str, inputs: Any) -> list[Credit | None]:
        return [self.met.get((text, recorded.key)) for recorded in inputs]

    def measure(self, prompt: str, text: str, inputs: Any) -> list[Credit | None]:
        known = sum(name == text for name, _ in self.met)
        for at, recorded in enumerate(inputs, start=known):
            self.met.setdefault((text, recorded.key), Credit(float(at % 10 < self.parts.get(text, 0))))
        return self.known_credits(prompt, text, inputs)

    def counts(self) -> dict[str, int]:
        return dict(Counter(text for text, _ in self.met if text in self.parts))


class Searching:
    """A search of the answer prompt whose sources offer these texts, and the numbers that were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, champion: str, offers: list[Rewrite]) -> None:
        monkeypatch.setattr("optimizer.search.new_texts.examples_of", lambda *given: ((), ()))
        monkeypatch.setattr("optimizer.search.new_texts.whole_demonstrations", lambda *given: [])
        self.wanted: list[int] = []
        self.rounds: list[Any] = []
        self.credits: list[Credit | None] = []

        def propose(n: int, request: Any, count: int, **more: Any) -> list[Rewrite]:
            self.wanted.append(count)
            return [offer for offer in offers if offer.text not in request.tried][:count]

        spec = SimpleNamespace(name="answer", contract=SimpleNamespace(violations=lambda text: []))
        self.tuning: Any = SimpleNamespace(
            prompts={"answer": spec},
            baseline={"answer": champion},
            sources=SimpleNamespace(demonstrates=False, own_author=False, propose=propose),
            train=[],
            seed_of=lambda n: n,
            settings=SimpleNamespace(seed=0),
            outcomes=lambda split: [],
            champion={"answer": champion},
            operations=[SimpleNamespace(prompt="answer", stage="answer")],
            allow=lambda calls: None,
            step=lambda *given: None,
            threads=SimpleNamespace(map=map),
        )
        self.search = PromptSearch(self.tuning, "answer")
        self.weighed: list[str] = []

    def weight(self, given: Any) -> float:
        self.weighed.append(given.key)
        return 1.0

    def begin(
        self,
        n: int,
        count: int,
        *,
        measured: bool,
        last: bool = False,
        local: Recorded | None = None,
        elsewhere: Collection[str] = (),
    ) -> list[list[str]]:
        """Begin a round; the texts of each step."""
        local = local or SimpleNamespace(
            objectives={"answer": SimpleNamespace(weight=self.weight)},
            known_credits=lambda prompt, text, given: self.credits[: len(given)],
        )
        many = len(self.credits) if isinstance(local, SimpleNamespace) else INPUTS
        inputs: Any = [
            SimpleNamespace(parts={}, key=str(n), conversation=SimpleNamespace(id=str(n))) for n in range(many)
        ]
        signals: Any = SimpleNamespace(signals=())
        this_round: Any = SimpleNamespace(n=n, rewrites={}, last=last)
        self.rounds.append(this_round)
        right = 0 if isinstance(local, SimpleNamespace) else local.right
        credits = [float(at < right) for at in range(many)]
        self.search.begin(
            local,
            this_round,
            inputs,
            credits,
            [],
            signals,
            count=count,
            measured=measured,
            elsewhere=elsewhere,
        )
        return [[rewrite.text for rewrite in step.rewrites] for step in self.search.steps(0.0, {})]


def test_a_rewrite_of_a_text_with_demonstrations_is_known_to_show_them_and_one_by_hand_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    champion = take_apart(TEMPLATE).with_filled([(VALUES, "Tom")]).text
    edited = add_instruction(champion, "Be short.")
    assert VALUES["context"] in edited
    searching = Searching(
        monkeypatch, champion, [Rewrite("answer", "own", HAND, ""), Rewrite("answer", edited, "bank", "")]
    )
    searching.search.demonstrations = SHOWN
    searching.begin(1, 4, measured=False)
    shows = {arm.scored.rewrite.text: arm.scored.rewrite.shows for arm in searching.search.arms()}
    assert shows == {"own": frozenset(), edited: {"c1"}}


def test_where_recorded_inputs_mislead_no_more_texts_are_asked_for_than_meet_conversations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offers = [Rewrite("answer", f"{TEMPLATE} {n}", "bank", "") for n in range(REWRITES)]
    searching = Searching(monkeypatch, TEMPLATE, offers)
    assert searching.begin(1, REWRITES, measured=False) == []
    assert len(searching.search.arms()) == UNMEASURED_REWRITES
    assert searching.wanted == [UNMEASURED_REWRITES]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("fifths", "right"), [(1, 0), (4, 2)])
def test_the_inputs_that_a_text_meets_first_are_not_by_chance_those_that_were_right(
    monkeypatch: pytest.MonkeyPatch, seed: int, fifths: int, right: int
) -> None:
    local = Recorded({"offer": 5}, right=fifths * INPUTS // 5)
    searching = Searching(monkeypatch, TEMPLATE, [Rewrite("answer", "offer", "bank", "")])
    searching.tuning.settings.seed = seed
    searching.begin(1, 1, measured=True, local=local)
    searching.search.take(next(searching.search.steps(0.0, {})))
    assert sum(int(key) < local.right for text, key in local.met if text == "offer") == right
    assert len([text for text, _ in local.met if text == "offer"]) == BATCH


def test_what_the_champion_leaves_to_gain_is_what_it_lost_on_the_inputs_that_it_was_measured_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searching = Searching(monkeypatch, TEMPLATE, [])
    searching.begin(1, 4, measured=True)
    assert searching.search.room == USUAL_ROOM
    searching.credits = [Credit(value) for value in (0.9,) * 8] + [None]
    searching.begin(2, 4, measured=True)
    assert searching.search.room == pytest.approx((USUAL_INPUTS * USUAL_ROOM + 8 * 0.1) / (USUAL_INPUTS + 8))


def test_the_weight_of_an_input_is_asked_for_once_a_round_since_an_objective_may_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searching = Searching(monkeypatch, TEMPLATE, [Rewrite("answer", f"{TEMPLATE} 1", "bank", "")])
    searching.credits = [Credit(0.5)] * 6
    searching.begin(1, 4, measured=True)
    for _ in range(3):
        assert list(searching.search.steps(0.0, {}))
        assert searching.search.of_next({})
    assert sorted(searching.weighed) == [str(at) for at in range(6)]


def expected_of_next(searching: Searching, shown: Mapping[str, float]) -> float:
    """The mean of what is better than the champion."""
    (prospects,) = searching.search.of_next(shown)
    return sum(max(0.0, belief.mean) * chance for belief, chance in prospects)


def test_the_less_is_left_to_gain_the_less_is_expected_of_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    searching = Searching(monkeypatch, TEMPLATE, [Rewrite("answer", f"{TEMPLATE} 1", "bank", "")])
    expected: list[float] = []
    for lost in (0.8, 0.05):
        searching.credits = [Credit(1 - lost)] * 38
        searching.begin(len(expected) + 1, 4, measured=True)
        (prospects,) = searching.search.of_next({})
        expected.append(expected_of_next(searching, {}))
        assert max(belief.mean for belief, _ in prospects) <= lost
        assert max(belief.deviation for belief, _ in prospects) < USUAL_DEVIATION * searching.search.room
    assert expected[0] > 5 * expected[1] > 0


def test_the_next_text_is_like_one_before_it_or_like_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def after(tenths: int) -> tuple[Searching, str]:
        offers = [Rewrite("answer", f"{TEMPLATE} {n}", "bank", "") for n in range(MISSES)]
        searching = Searching(monkeypatch, TEMPLATE, offers)
        searching.begin(1, 2 * MISSES, measured=True, local=Recorded({offers[0].text: tenths}))
        before.append(expected_of_next(searching, {}))
        for _ in range(0, MISSES, TOGETHER):
            searching.search.take(next(searching.search.steps(0.0, {})))
        return searching, offers[0].text

    before: list[float] = []
    (poor, _), (good, best) = after(0), after(9)
    assert expected_of_next(poor, {}) < 0.7 * before[0]
    assert expected_of_next(good, {}) > expected_of_next(poor, {})
    # Whole conversations showed that its gain was none.
    assert expected_of_next(good, {best: 0.0}) == pytest.approx(expected_of_next(poor, {}), rel=0.05)


def test_a_source_that_has_no_more_texts_promises_none(monkeypatch: pytest.MonkeyPatch) -> None:
    finite = [Rewrite("answer", f"{TEMPLATE} {n}", "bank", "") for n in range(2)]
    offers = [*finite, *(Rewrite("answer", f"{TEMPLATE} more {n}", "reflection", "") for n in range(40))]
    searching = Searching(monkeypatch, TEMPLATE, offers)
    local = Recorded({})
    searching.begin(1, 8, measured=True, local=local)
    assert len(searching.search.of_next({})) == 2
    for _ in range(2):
        searching.search.take(next(searching.search.steps(0.0, {})))
    searching.begin(2, 8, measured=True, local=local)
    assert len(searching.search.of_next({})) == 1


def test_a_text_of_which_nothing_is_measured_waits_for_whole_conversations_until_the_gate_decides_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offers = [Rewrite("answer", f"{TEMPLATE} {n}", "bank", "") for n in range(2 * UNMEASURED_REWRITES)]
    searching = Searching(monkeypatch, TEMPLATE, offers)

    def waiting(n: int, *, measured: bool = False) -> list[str]:
        searching.begin(n, REWRITES, measured=measured)
        if measured:
            return [rewrite.text for step in searching.search.steps(0.0, {}) for rewrite in step.rewrites]
        return sorted(arm.scored.rewrite.text for arm in searching.search.arms())

    texts = [offer.text for offer in offers]
    assert waiting(1) == waiting(2) == texts[:UNMEASURED_REWRITES]
    rewrites = searching.rounds[-1].rewrites
    for offer, about in zip(offers, ("", "answer and extract together"), strict=False):
        rewrites[offer.key] = replace(rewrites[offer.key], gate=SimpleNamespace(about=about))
    assert waiting(3) == texts[1 : UNMEASURED_REWRITES + 1]
    assert set(texts[1 : UNMEASURED_REWRITES + 1]) <= set(waiting(4, measured=True))
    assert searching.search.arms() == []


def test_a_text_is_not_scored_on_what_its_proposer_says_that_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Demonstration((("question", "?"),), "Zibbel", "train-0")
    searching = Searching(monkeypatch, TEMPLATE, [Rewrite("answer", f"{TEMPLATE} 1", "mine", "", (shown,))])
    searching.begin(1, REWRITES, measured=True)
    (step,) = [step for step in searching.search.steps(0.0, {}) if step.rewrites]
    assert step.rewrites[0].shows == {"train-0"}


@pytest.mark.parametrize(("tenths", "hope"), [(0, 0.5), (9, 1.0)])
def test_texts_without_a_gain_leave_less_hope_in_the_next_whoever_is_blamed(
    monkeypatch: pytest.MonkeyPatch, tenths: int, hope: float
) -> None:
    offers = [Rewrite("answer", f"{TEMPLATE} {n}", "bank", "") for n in range(MISSES)]
    searching = Searching(monkeypatch, TEMPLATE, offers)
    searching.begin(1, 2 * MISSES, measured=True, local=Recorded({offers[0].text: tenths}))
    assert searching.search.hope == 1.0
    for _ in range(0, MISSES, TOGETHER):
        searching.search.take(next(searching.search.steps(0.0, {})))
    assert searching.search.hope == hope


def test_that_the_others_gain_nothing_over_the_best_of_them_leaves_the_hope_in_the_next_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offers = [Rewrite("answer", f"{TEMPLATE} {n}", "bank", "") for n in range(MISSES)]
    local = Recorded({offers[0].text: 9})
    searching = Searching(monkeypatch, TEMPLATE, offers)
    searching.begin(1, 2 * MISSES, measured=True, local=local)
    for _ in range(0, MISSES, TOGETHER):
        searching.search.take(next(searching.search.steps(0.0, {})))
    searching.tuning.champion["answer"] = offers[0].text
    searching.begin(2, 2 * MISSES, measured=True, local=local)
    assert searching.search.hope == 1.0


def test_of_the_inputs_that_a_text_meets_a_third_is_where_others_are_to_blame_since_blame_may_be_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = Recorded({"offer": 5})
    searching = Searching(monkeypatch, TEMPLATE, [Rewrite("answer", "offer", "bank", "")])
    elsewhere = {str(key) for key in range(INPUTS) if key % 10 != 1}
    searching.begin(1, 1, measured=True, local=local, elsewhere=elsewhere)
    met: list[str] = []
    for step in (searching.search.steps(0.0, {}), searching.search.steps(0.0, {})):
        searching.search.take(next(step))
        met = [key for text, key in local.met if text == "offer"]
    assert [key in elsewhere for key in met] == [False, False, True] * 2


def worth(step: LocalStep) -> float:
    return rate_of_measuring(step.prospects, step.inputs, lambda belief: Venture(max(0.0, belief.mean), 100))


def raced(monkeypatch: pytest.MonkeyPatch, parts: Mapping[str, int], *, last: bool) -> tuple[dict[str, int], set[str]]:
    """The inputs that each text has met when one may meet conversations; and the texts that may."""
    searching = Searching(monkeypatch, TEMPLATE, [Rewrite("answer", text, "bank", "") for text in parts])
    local = Recorded(parts)
    searching.begin(1, 2 * len(parts), measured=True, last=last, local=local)
    for _ in range(100):
        ready = searching.search.ready(0.04, {})
        if ready:
            return local.counts(), ready
        steps = [step for step in searching.search.steps(0.04, {}) if step.rewrites]
        searching.search.take(max(steps, key=worth))
    raise AssertionError("no text may ever go on")


TEXTS = [f"{TEMPLATE} {n}" for n in range(8)]


def test_in_the_last_round_texts_meet_inputs_until_one_is_clearly_ahead_or_the_best_have_met_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    equal = dict.fromkeys(TEXTS, 2)
    counts, ready = raced(monkeypatch, equal, last=True)
    assert ready == set(TEXTS)
    assert sorted(counts.values())[-2:] >= [ENOUGH_INPUTS] * 2
    assert min(counts.values()) >= ENOUGH_INPUTS // 8
    assert sum(counts.values()) < len(TEXTS) * ENOUGH_INPUTS
    clear, ready = raced(monkeypatch, {**dict.fromkeys(TEXTS, 0), TEXTS[5]: 10}, last=True)
    assert ready == {TEXTS[5]}
    assert set(clear) == set(TEXTS)
    assert max(clear.values()) < ENOUGH_INPUTS


def test_where_a_round_follows_a_text_may_go_on_as_soon_as_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, ready = raced(monkeypatch, dict.fromkeys(TEXTS, 2), last=False)
    assert counts == dict.fromkeys(TEXTS[:TOGETHER], BATCH)
    assert ready == set(TEXTS[:TOGETHER])


def test_many_that_may_be_better_count_for_more_than_one() -> None:
    best = Arm(scored("best", {"a": 0.4}), Belief(0.2, 0.1))
    others = [Arm(scored(str(n), {"a": 0.0}), Belief(0.0, 0.1)) for n in range(20)]
    lead = others[0].belief.lead(best.belief)
    assert lead == pytest.approx(0.00503, abs=0.00001)
    assert ahead_of_others([best, others[0]], 2 * lead) == {"best"}
    assert ahead_of_others([best, *others], 2 * lead) == set()


def test_new_texts_wait_for_the_next_round_unless_the_text_that_they_were_made_of_is_no_longer_the_champion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offers = [Rewrite("answer", f"{TEMPLATE} {n}", "bank", "") for n in range(12)]
    searching = Searching(monkeypatch, TEMPLATE, offers)
    texts = [offer.text for offer in offers]
    assert searching.begin(1, 8, measured=True) == [texts[:TOGETHER]]
    assert searching.begin(2, 8, measured=True) == [texts[:TOGETHER]]
    # A quarter is for the second generation.
    assert searching.wanted == [6, 0]
    searching.tuning.champion = {"answer": texts[1]}
    assert searching.begin(3, 8, measured=True)[0][0] == texts[0]
    assert searching.wanted[-1] == 6
