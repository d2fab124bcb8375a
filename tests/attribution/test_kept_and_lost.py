"""What memories keep of a turn in other words, and what they turn round, over names, denials, times and spellings."""

from __future__ import annotations

import pytest
from scripted_memory import ScriptedMemory

from attribution.judging.words import judge
from attribution.survival.verdicts.mistakes import same_answer
from tracing.systems.conversations import Conversation, Question

SISTER = ("My sister is Greta.", "Greta moved to Bergen.")
SISTER_ASKED = ("Where does Ana's sister live?", "Bergen")
SHELLFISH = ("I don't eat shellfish any more.",)
EXAM = ("I passed the exam.",)
COUNTED = ("How many films did Ana see?", "3")
FILMS = ("I saw Dune on Monday.", "I saw Alien on Friday.", "And Heat on Sunday.")
CLASSES = ("Pottery class is on Monday.", "Choir is on Friday.")


@pytest.mark.parametrize(
    ("told", "facts", "asked", "reply", "operation"),
    [
        (SISTER, ("Ana's sister is Greta.", "Greta moved to Bergen."), SISTER_ASKED, "unknown", "answer"),
        (SISTER, ("Ana's sister is Greta.", "Greta moved."), SISTER_ASKED, "unknown", "extract_facts"),
        (SHELLFISH, ("Ana eats shellfish.",), ("Does Ana eat shellfish?", "no"), "yes", "extract_facts"),
        (SHELLFISH, ("Ana gave up shellfish.",), ("Does Ana eat shellfish?", "no"), "yes", "answer"),
        (EXAM, ("Ana did not pass the exam.",), ("Did Ana pass the exam?", "yes"), "no", "extract_facts"),
        (EXAM, ("Ana passed the exam.",), ("Did Ana pass the exam?", "yes"), "no", "answer"),
        (FILMS, ("Ana saw Dune.", "Ana saw Alien.", "Ana saw Heat."), COUNTED, "2", "answer"),
        (FILMS, ("Ana saw Dune.", "Ana saw Heat."), COUNTED, "2", "extract_facts"),
        (
            CLASSES,
            ("Ana has pottery class on Friday.", "Ana has choir on Monday."),
            ("What does Ana do on Monday?", "pottery class"),
            "choir",
            "extract_facts",
        ),
        (("I moved to Zürich.",), ("Ana moved to Zurich.",), ("Where did Ana move?", "Zürich"), "Bern", "answer"),
        (("I fly to Tromsø.",), ("Ana flies to Tromso.",), ("Where does Ana fly?", "Tromsø"), "Oslo", "answer"),
        (
            ("I study at the University of Exeter.",),
            ("Ana studies at Exeter uni.",),
            ("Where does Ana study?", "University of Exeter"),
            "Leeds",
            "answer",
        ),
    ],
)
def test_who_kept_and_who_lost(
    told: tuple[str, ...], facts: tuple[str, ...], asked: tuple[str, str], reply: str, operation: str
) -> None:
    turns = [{"id": f"D1:{at}", "speaker": "Ana", "text": text} for at, text in enumerate(told, start=1)]
    session = {"id": "D1", "time": "2026-03-04 10:00", "turns": turns}
    conversation = Conversation.model_validate({"id": "c", "speakers": ["Ana"], "sessions": [session]})
    ids = [turn["id"] for turn in turns]
    with ScriptedMemory(conversation) as memory:
        memory.remember(ids, *facts)
        question = Question(id="q", question=asked[0], answers=(asked[1],), evidence=tuple(ids))
        blame = memory.blame(memory.answer(question, list(memory.entries), reply))
    assert blame.operation == operation, blame.reason


@pytest.mark.parametrize(
    ("reply", "gold", "right"),
    [
        ("Zurich", "Zürich", True),
        ("Muenchen", "München", True),
        ("Munchen", "München", True),
        ("Sao Paulo", "São Paulo", True),
        ("Lodz", "Łódź", True),
        ("a cafe", "café", True),
        ("Zug", "Zürich", False),
    ],
)
def test_a_name_is_right_without_its_accents(reply: str, gold: str, right: bool) -> None:
    assert judge(reply, (gold,)).score == right


def test_the_order_of_numbers_is_part_of_an_answer_that_has_nothing_else() -> None:
    assert not same_answer("1-3", ("3-1",), "What was the score?")
    assert same_answer("3 - 1", ("3-1",), "What was the score?")
