"""One prompt's search: parents have something others lack, and every estimate covers what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from optimizer.proposers.rewrites import HAND, Demonstration, Rewrite
from optimizer.proposers.template import add_instruction, take_apart
from optimizer.racing.halving import PARENTS, LocalScore, Pool, parents_of
from optimizer.search.prompt_search import FINALISTS, REWRITES, STAKES, PromptSearch, most_reruns


def scored(text: str, by_input: Mapping[str, float]) -> LocalScore:
    gain = sum(by_input.values()) / len(by_input)
    return LocalScore(Rewrite(text, "bank", ""), 0.5 + gain, gain, len(by_input), {}, by_input)


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


def test_most_reruns_grow_with_the_inputs_up_to_what_the_last_rung_asks_for() -> None:
    last = round(STAKES[-1][0])
    counts = [most_reruns(inputs) for inputs in (4, 12, 30, last, 10 * last)]
    assert counts == sorted(counts)
    assert counts[0] > REWRITES * 4
    assert counts[-1] == counts[-2]


TEMPLATE = "Answer the question.\n\nMemories:\n{context}\nQuestion: {question}\nAnswer:"
VALUES = {"context": "Ann's cat is Tom", "question": "Ann's cat?"}
SHOWN: Any = (SimpleNamespace(recorded=SimpleNamespace(conversation=SimpleNamespace(id="c1"))),)


def searching(champion: str, shown: tuple[Demonstration, ...], offers: list[Rewrite]) -> tuple[PromptSearch, list[int]]:
    """A search whose sources offer these texts, and the numbers that were asked for."""
    wanted: list[int] = []

    def propose(n: int, request: Any, count: int, **more: Any) -> list[Rewrite]:
        wanted.append(count)
        return offers[:count]

    spec = SimpleNamespace(name="answer", contract=SimpleNamespace(violations=lambda text: []))
    tuning: Any = SimpleNamespace(
        prompts={"answer": spec},
        sources=SimpleNamespace(demonstrates=False, own_author=False, propose=propose),
        train=[],
        seed_of=lambda n: n,
        outcomes=lambda split: [],
        request=lambda *given, **more: SimpleNamespace(text=champion, **more),
    )
    local: Any = SimpleNamespace(objectives={"answer": object()})
    this_round: Any = SimpleNamespace(n=2, rewrites={})
    return PromptSearch(tuning, local, this_round, "answer", [], shown, {champion}, Pool()), wanted


def test_a_rewrite_of_a_text_with_demonstrations_is_known_to_show_them_and_one_by_hand_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("optimizer.search.prompt_search.examples_of", lambda *given: ((), ()))
    champion = take_apart(TEMPLATE).with_filled([(VALUES, "Tom")]).text
    edited = add_instruction(champion, "Be short.")
    assert VALUES["context"] in edited
    search, _ = searching(champion, SHOWN, [Rewrite("answer", edited, "bank", ""), Rewrite("answer", "own", HAND, "")])
    rewrites = [each.rewrite for each in search.finalists(4, [], SimpleNamespace(signals=()), measured=False)]  # type: ignore[arg-type]
    assert [(rewrite.text, rewrite.shows) for rewrite in rewrites] == [("own", frozenset())]
    search, _ = searching(champion, SHOWN, [Rewrite("answer", edited, "bank", "")])
    rewrites = [each.rewrite for each in search.finalists(4, [], SimpleNamespace(signals=()), measured=False)]  # type: ignore[arg-type]
    assert [(rewrite.text, rewrite.shows) for rewrite in rewrites] == [(edited, {"c1"})]


def test_where_recorded_inputs_mislead_no_more_texts_are_asked_for_than_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimizer.search.prompt_search.examples_of", lambda *given: ((), ()))
    offers = [Rewrite("answer", f"{TEMPLATE} {n}", "bank", "") for n in range(REWRITES)]
    search, wanted = searching(TEMPLATE, (), offers)
    found = search.finalists(REWRITES, [], SimpleNamespace(signals=()), measured=False)  # type: ignore[arg-type]
    assert len(found) == FINALISTS
    assert wanted == [FINALISTS]
