"""The gold memories of RealMem score extraction: the objective that reads annotated facts reads them."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest
from data_files import SOUND

from experiments.data.datasets import conversations_of
from experiments.systems.fact_memory import FactMemory
from optimizer.objectives.extraction import ExtractionObjective
from optimizer.objectives.objective import RecordedInput
from optimizer.objectives.objectives import Golds
from tracing.systems.conversations import Conversation
from tracing.systems.layouts import Item

_NEAR = (up / "shared" / "data" / "realmem" for up in Path(__file__).resolve().parents)
REALMEM = next((folder for folder in _NEAR if folder.is_dir()), None)


def recorded(conversation: Conversation) -> list[tuple[RecordedInput, list[Item]]]:
    """What an extraction from each turn with gold memories is given, and these memories."""
    turns = {turn.id: turn for turn in conversation.turns()}
    found = []
    for name in dict.fromkeys(fact.turn for fact in conversation.facts):
        message = Item("messages", name, "message", turns[name].spoken)
        given = RecordedInput(name, FactMemory.prompts["extract"], conversation, {"messages": (message,)})
        told = [fact.text for fact in conversation.facts if fact.turn == name]
        found.append((given, [Item("facts", f"f{n}", "fact", text) for n, text in enumerate(told)]))
    return found


def test_what_keeps_the_gold_memories_is_worth_more_than_what_loses_them(tmp_path: Path) -> None:
    conversation, *_ = conversations_of("realmem", SOUND["realmem"](tmp_path))
    objective = ExtractionObjective(Golds(verbatim=False))
    (given, gold), *_ = recorded(conversation)
    assert objective.weight(given) == 1.0
    assert objective.credit(given, gold).value == 1.0
    lost = objective.credit(given, [])
    assert lost.value == 0.0
    assert "The user flies to Oslo in May." in lost.lacks[0]
    assert [item.text for item in objective.right(given) or ()] == ["The user flies to Oslo in May."]


def test_what_stores_an_interference_of_halumem_is_worth_less(tmp_path: Path) -> None:
    ann, *_ = conversations_of("halumem", SOUND["halumem"](tmp_path))
    objective = ExtractionObjective(Golds(verbatim=False))
    messages = tuple(Item("messages", turn.id, "message", turn.spoken) for turn in ann.sessions[0].turns)
    given = RecordedInput("D1", FactMemory.prompts["extract"], ann, {"messages": messages})
    gold, interference = (Item("facts", fact.id, "fact", fact.text) for fact in ann.facts[:2])
    assert objective.credit(given, [gold]).value == 1.0
    both = objective.credit(given, [gold, interference])
    assert both.value == 0.75
    assert both.lacks == (f"not to be stored: '{interference.text}'",)
    assert [item.text for item in objective.right(given) or ()] == [gold.text]


@pytest.mark.slow
@pytest.mark.skipif(REALMEM is None, reason="the development data is not here")
def test_so_it_is_with_the_memories_of_the_real_persona() -> None:
    assert REALMEM is not None
    path = REALMEM / "Lin_Wanyu_dialogues_256k.json"
    cases = []
    for conversation in conversations_of("realmem", path):
        objective = ExtractionObjective(Golds(verbatim=False))
        cases += [
            (objective.weight(given), objective.credit(given, gold).value, objective.credit(given, []).value)
            for given, gold in recorded(conversation)
        ]
    assert all(weight > 0 for weight, _, _ in cases)
    # Not all: some memories say what several turns told, which a single one does not support.
    assert mean(kept for _, kept, _ in cases) > 0.8
    assert mean(lost for *_, lost in cases) < 0.1
