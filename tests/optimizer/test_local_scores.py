"""Texts on recorded inputs: conversations alternate, and nothing is scored on what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from scripted_world import world

from experiments.systems.fact_memory import FactMemory
from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.proposers.rewrites import Demonstration, Rewrite
from optimizer.racing.local_scores import alternating, compared, spread, usual_error
from optimizer.racing.whole_demonstrations import demonstration_sets, with_demonstrations
from tracing.systems.conversations import Conversation
from tracing.systems.layouts import Item

CONVERSATIONS = world(train=12).train
SPEC = FactMemory.prompts["extract"]


def recorded(conversation: Conversation, number: int) -> RecordedInput:
    messages = (Item("messages", f"D1:{number}", "message", f"Anke: number {number}"),)
    return RecordedInput(f"{conversation.id}-{number}", SPEC, conversation, {"conversation": messages})


INPUTS = [recorded(conversation, number) for conversation in CONVERSATIONS[:4] for number in range(5)]


def shown(given: RecordedInput) -> Demonstration:
    inputs = (("conversation", "Anke: My lorry is red."),)
    return Demonstration(inputs, '{"facts": ["Anke\'s lorry is red."]}', given.conversation.id)


def proposed(text: str, source: str, reason: str) -> Rewrite:
    return Rewrite(SPEC.name, text, source, reason)


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


def test_the_first_few_inputs_are_spread_over_the_credits() -> None:
    def places(credits: Sequence[float | None]) -> list[int]:
        order = [INPUTS.index(given) for given in spread(INPUTS[: len(credits)], credits)]
        assert sorted(order) == list(range(len(credits)))
        return order

    right = {4, 9, 10, 15}
    order = places([float(at in right) for at in range(20)])
    assert [sum(at in right for at in order[:count]) for count in (1, 2, 3, 7, 14, 20)] == [0, 0, 0, 1, 2, 4]
    # Also where none is wholly right: the middle, the worst part, the best part, and what is between them.
    assert places([at / 20 for at in range(20)])[:4] == [10, 0, 15, 5]
    assert [len(places([None] * count)) for count in (1, 2, 3, 13)] == [1, 2, 3, 13]
    assert spread([], []) == []


def test_a_text_is_not_scored_on_a_conversation_that_it_shows() -> None:
    rewrite = with_demonstrations(proposed(SPEC.text, "", ""), (shown(INPUTS[0]),))
    assert rewrite is not None
    assert "Anke's lorry is red." in rewrite.text
    assert not SPEC.contract.violations(rewrite.text)
    score = compared(rewrite, "champion", INPUTS, Scripted({"champion": 0.5, rewrite.text: 1.0}), one)
    assert score.inputs == 15
    assert INPUTS[0].conversation.id not in score.by_conversation


def test_demonstrations_of_a_set_come_from_different_conversations() -> None:
    sets = list(demonstration_sets([shown(given) for given in INPUTS[:12]], seed=0))
    assert {len(chosen) for chosen in sets} == {1, 2, 3}
    assert all(len({each.conversation for each in chosen}) == len(chosen) for chosen in sets)


def test_the_error_of_a_gain_is_that_of_its_conversations() -> None:
    same = compared(proposed("better", "bank", ""), "champion", INPUTS, Scripted({"champion": 0.5, "better": 0.9}), one)
    assert same.error == pytest.approx(0)
    # Few inputs that happen to agree are not taken for sure.
    assert same.noise == pytest.approx(usual_error(20) / 2**0.5)
    first = [given for given in INPUTS if given.conversation.id == INPUTS[0].conversation.id]
    alone = compared(proposed("better", "bank", ""), "champion", first, Scripted({"champion": 0.5, "better": 0.9}), one)
    assert alone.error == 1
    assert alone.noise > same.noise


def test_a_failed_call_counts_for_nobody() -> None:
    failing = compared(
        proposed("failing", "bank", ""), "champion", INPUTS, Scripted({"champion": 0.5, "failing": -1.0}), one
    )
    assert (failing.inputs, failing.gain, failing.by_conversation) == (0, 0.0, {})
