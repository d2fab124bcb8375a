"""One prompt's search: parents have something others lack, and every estimate covers what is asked."""

from __future__ import annotations

from collections.abc import Mapping

from optimizer.racing.arms import Arm
from optimizer.racing.halving import LocalScore
from optimizer.search.prompt_search import ARMS, PARENTS, STAKES, most_reruns, parents_of


def scored(text: str, by_conversation: Mapping[str, float]) -> LocalScore:
    gain = sum(by_conversation.values()) / len(by_conversation)
    return LocalScore(Arm(text, "bank", ""), 0.5 + gain, gain, len(by_conversation), by_conversation)


def test_a_text_that_is_the_best_on_most_conversations_is_a_parent_before_one_that_is_good_everywhere() -> None:
    broad = scored("broad", {"a": 0.3, "b": 0.3, "c": 0.3})
    narrow = scored("narrow", {"a": 0.4, "b": 0.4, "c": -0.2})
    second = scored("second", {"a": 0.2, "b": 0.2, "c": 0.2})
    assert [each.arm.text for each in parents_of([broad, second, narrow])] == ["narrow", "broad"]


def test_only_what_is_ahead_of_the_champion_is_a_parent() -> None:
    assert parents_of([scored("worse", {"a": -0.1}), scored("same", {"a": 0.0})]) == []
    many = [scored(str(n), {"a": n / 10}) for n in range(1, 6)]
    assert [each.arm.text for each in parents_of(many)] == ["5", "4"][:PARENTS]


def test_most_reruns_grow_with_the_inputs_up_to_what_the_last_rung_asks_for() -> None:
    last = round(STAKES[-1][0])
    counts = [most_reruns(inputs) for inputs in (4, 12, 30, last, 10 * last)]
    assert counts == sorted(counts)
    assert counts[0] > ARMS * 4
    assert counts[-1] == counts[-2]
