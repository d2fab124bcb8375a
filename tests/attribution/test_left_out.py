"""What a reply leaves out is what was lost, and what other turns tell of other days is not what a turn told."""

from __future__ import annotations

import pytest
from scripted_memory import ScriptedMemory

from tracing.systems.conversations import Conversation, Question

ADVICE = "Do your research, find a lawyer at once, gather the documents and prepare your heart."


@pytest.mark.parametrize(
    ("fact", "error_type"),
    [
        ("Mara advises to find and gather the documents and prepare the heart.", "ExtractionError"),
        ("Mara advises to do research, find a lawyer, gather the documents and prepare the heart.", "ResponseError"),
    ],
)
def test_a_reply_that_gives_nearly_all_it_was_given_is_not_to_blame_for_the_rest(fact: str, error_type: str) -> None:
    talk = conversation([("2024-05-01", ADVICE), ("2024-05-09", "I baked bread.")])
    answer = "Do research, find a lawyer at once, gather the documents and prepare the heart"
    question = Question(id="q", question="What does Mara advise?", answers=(answer,), evidence=("D1:1",))
    with ScriptedMemory(talk) as memory:
        memory.remember(("D1:1",), fact)
        blame = memory.blame(memory.answer(question, ["m1"], "Find the documents and prepare the heart"))
    assert blame.error_type == error_type


def test_last_week_in_what_other_turns_tell_is_not_the_week_before_a_turn() -> None:
    talk = conversation([("2024-05-15", "I met my friends last week."), ("2024-07-17", "I saw my friends last week!")])
    question = Question(
        id="q", question="When did Mara meet her friends?", answers=("The week before 15 May 2024",), evidence=("D1:1",)
    )
    with ScriptedMemory(talk) as memory:
        memory.remember(("D1:1",), "Mara has good friends.")
        memory.remember(("D2:1",), "Mara saw her friends last week.")
        blame = memory.blame(memory.answer(question, ["m1"], "I don't know"))
    assert blame.error_type == "ExtractionError"


def conversation(said: list[tuple[str, str]]) -> Conversation:
    """What Mara says, a session a day."""
    sessions = [
        {"id": f"D{at}", "time": day, "turns": [{"id": f"D{at}:1", "speaker": "Mara", "text": text}]}
        for at, (day, text) in enumerate(said, start=1)
    ]
    return Conversation.model_validate({"id": "mara", "speakers": ["Mara", "Ilya"], "sessions": sessions})
