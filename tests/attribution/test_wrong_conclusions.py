"""A reply that is drawn from the evidence had it, and an entry under another time stamp was found."""

from __future__ import annotations

import pytest
from scripted_memory import ScriptedMemory

from tracing.systems.conversations import Conversation, Question

EMBLEMS = "The oak in our garden means patience to me, and the heron means calm."


@pytest.mark.parametrize(
    ("turn", "facts", "hits", "reply", "error_type"),
    [
        (EMBLEMS, ("Mara has an oak for patience.", "The heron means calm to Mara."), 2, "Heron", "ResponseError"),
        # Nothing that the answer was given says heron.
        (EMBLEMS, ("Mara has an oak for patience.", "The heron means calm to Mara."), 1, "Heron", "ExtractionError"),
        # What it lists of the right answer is not a conclusion.
        (EMBLEMS, ("Mara has an oak for patience.", "The heron means calm to Mara."), 2, "Oak", "ExtractionError"),
        # The lion may be in the picture.
        (f"Look! {EMBLEMS}", ("Mara has an oak for patience.", "The heron is Mara's."), 2, "Heron", "ExtractionError"),
    ],
)
def test_an_answer_that_replies_with_the_evidence_had_it(
    turn: str, facts: tuple[str, ...], hits: int, reply: str, error_type: str
) -> None:
    talk = conversation(turn)
    question = Question(id="q", question="Which are the emblems of Mara?", answers=("Oak, lion",), evidence=("D1:1",))
    with ScriptedMemory(talk) as memory:
        memory.remember(("D1:1",), *facts)
        blame = memory.blame(memory.answer(question, ["m1", "m2"][:hits], reply))
    assert blame.error_type == error_type


def test_an_answer_drawn_from_the_evidence_is_as_sure_as_one_that_was_given_all() -> None:
    question = Question(id="q", question="Which are the emblems of Mara?", answers=("Lion",), evidence=("D1:1",))
    with ScriptedMemory(conversation(EMBLEMS)) as memory:
        memory.remember(("D1:1",), "Mara has an oak for patience.", "The heron means calm to Mara.")
        blame = memory.blame(memory.answer(question, ["m1", "m2"], "Heron"))
    assert "something else was to be concluded" in blame.reason
    assert blame.confidence > 0.8


def test_a_conclusion_in_a_list_is_drawn_from_what_the_evidence_says() -> None:
    talk = conversation("I am keen on counselling or on working in mental health.")
    text = "Which fields would Mara likely study?"
    question = Question(id="q", question=text, answers=("Psychology, counselling",), evidence=("D1:1",))
    with ScriptedMemory(talk) as memory:
        memory.remember(("D1:1",), "Mara is keen on counselling or on working in mental health.")
        blame = memory.blame(memory.answer(question, ["m1"], "Counselling"))
    assert blame.error_type == "ResponseError"


def test_what_the_question_says_is_no_part_of_its_answer() -> None:
    talk = conversation("Here is a bit of my art for the show!")
    text = "What kind of art does Mara make?"
    question = Question(id="q", question=text, answers=("abstract art",), evidence=("D1:1",))
    with ScriptedMemory(talk) as memory:
        memory.remember(("D1:1",), "Mara brings art to the show.")
        blame = memory.blame(memory.answer(question, ["m1"], "Paintings"))
    assert blame.error_type == "ExtractionError"


@pytest.mark.parametrize(("hits", "error_type"), [(["m1"], "ResponseError"), ([], "RetrievalError")])
def test_an_entry_under_another_time_stamp_was_found(hits: list[str], error_type: str) -> None:
    talk = conversation("Last week I went to the parade.")
    question = Question(
        id="q", question="When did Mara go to the parade?", answers=("The week before 3 July 2024",), evidence=("D1:1",)
    )
    with ScriptedMemory(talk) as memory:
        memory.remember(("D1:1",), "Mara went to the parade last week.")
        case = memory.answer(question, hits, "On 15 July 2024", stamp="1:51 pm on 15 July, 2024: ")
        blame = memory.blame(case)
    assert blame.error_type == error_type


def conversation(text: str) -> Conversation:
    """What Mara says on one day, and on another."""
    texts = {"2024-07-03": text, "2024-07-15": "I baked a lion, and an abstract bird."}
    sessions = [
        {"id": f"D{at}", "time": day, "turns": [{"id": f"D{at}:1", "speaker": "Mara", "text": spoken}]}
        for at, (day, spoken) in enumerate(texts.items(), start=1)
    ]
    return Conversation.model_validate({"id": "mara", "speakers": ["Mara", "Ilya"], "sessions": sessions})
