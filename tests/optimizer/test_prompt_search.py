"""One prompt's search: parents have something others lack, and every estimate covers what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from optimizer.objectives.objective import Credit
from optimizer.proposers.rewrites import HAND, Demonstration, Rewrite
from optimizer.proposers.template import add_instruction, take_apart
from optimizer.racing.local_scores import PARENTS, LocalScore, Pool, parents_of
from optimizer.search.prompt_search import (
    REWRITES,
    TOGETHER,
    UNMEASURED_REWRITES,
    USUAL_INPUTS,
    USUAL_ROOM,
    PromptSearch,
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


class Searching:
    """A search of the answer prompt whose sources offer these texts, and the numbers that were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, champion: str, offers: list[Rewrite]) -> None:
        monkeypatch.setattr("optimizer.search.prompt_search.examples_of", lambda *given: ((), ()))
        monkeypatch.setattr("optimizer.search.prompt_search.whole_demonstrations", lambda *given: [])
        self.wanted: list[int] = []
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
        )
        self.search = PromptSearch(self.tuning, "answer")

    def begin(self, n: int, count: int, *, measured: bool) -> list[list[str]]:
        """Begin a round; the texts of each step."""
        local: Any = SimpleNamespace(
            objectives={"answer": SimpleNamespace(weight=lambda given: 1.0)},
            known_credits=lambda *given: self.credits,
        )
        inputs: Any = [
            SimpleNamespace(parts={}, conversation=SimpleNamespace(id=str(n))) for n in range(len(self.credits))
        ]
        signals: Any = SimpleNamespace(signals=())
        this_round: Any = SimpleNamespace(n=n, rewrites={})
        self.search.begin(local, this_round, inputs, [], signals, count=count, measured=measured)
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


def test_what_is_expected_of_a_text_is_learned_from_those_of_its_source() -> None:
    pool = Pool()
    pool.add(scored(str(n), {"a": gain}) for n, gain in enumerate((0.3, -0.2)))
    good = replace(scored("good", {"a": 0.4}), rewrite=Rewrite("answer", "good", "reflection", ""))
    pool.add([good])
    assert [gain for gain, _ in pool.gains("bank")] == [0.3, -0.2]
    assert [gain for gain, _ in pool.gains("reflection")] == [0.4]
    assert pool.gains("structure") == []


def test_what_the_champion_leaves_to_gain_is_what_it_lost_on_the_inputs_that_it_was_measured_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searching = Searching(monkeypatch, TEMPLATE, [])
    searching.begin(1, 4, measured=True)
    assert searching.search.room == USUAL_ROOM
    searching.credits = [Credit(value) for value in (0.9,) * 8] + [None]
    searching.begin(2, 4, measured=True)
    assert searching.search.room == pytest.approx((USUAL_INPUTS * USUAL_ROOM + 8 * 0.1) / (USUAL_INPUTS + 8))


def test_new_texts_are_worth_the_more_the_less_those_have_shown_that_met_conversations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searching = Searching(monkeypatch, TEMPLATE, [Rewrite("answer", f"{TEMPLATE} 1", "bank", "")])
    searching.begin(1, 8, measured=True)
    rejected, promising = (next(iter(searching.search.steps(0.05, {"other": shown}))).gain for shown in (0.0, 0.3))
    assert rejected > 3 * promising > 0


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
