"""Whom a text speaks of, by the names of the question and of the speakers."""

from __future__ import annotations

import pytest

from attribution.survival.matching.word_matcher import Grader
from attribution.survival.needs import needs_of
from attribution.text.content import Vocabulary, content_of
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn


@pytest.mark.parametrize(
    ("question", "text", "person"),
    [
        ("What does Isak call his pet goat?", "Isak's pet goat is named Snorri.", "right"),
        ("What does Isak call his pet goat?", "Petra's pet goat is named Snorri.", "other"),
        ("What does Isak call his pet goat?", "The pet goat is named Snorri.", "absent"),
        ("What does Pet call her goat?", "Petra's goat is named Tallulah.", "right"),
    ],
)
def test_a_name_is_abbreviated_by_a_name_not_by_a_word_that_begins_like_it(
    question: str, text: str, person: str
) -> None:
    turns = (
        Turn(id="D1:1", speaker="Isak", text="My pet goat is Snorri."),
        Turn(id="D1:2", speaker="Petra", text="Ha!"),
    )
    talk = Conversation(id="t", speakers=("Isak", "Petra"), sessions=(DialogueSession(id="D1", turns=turns),))
    asked = Question(id="q", question=question, answers=("Snorri",), evidence=("D1:1",))
    subject = Grader(asked, talk, Vocabulary(turn.text for turn in turns))
    assert subject.person(content_of(text)) == person


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Isak's pet goat is named Snorri.", True),
        ("Isak keeps a goat. It is named Snorri.", True),
        ("Isak came by. Petra keeps a goat. It is named Snorri.", False),
        ("Isak came by. Petra's pet goat is named Snorri.", False),
        ("Petra's pet goat is named Snorri, and Isak plays the harp.", False),
        ("Their pet goat is named Snorri. Isak plays the harp.", False),
        ("Petra came by. Isak keeps a goat, and it is named Snorri.", True),
        ("Petra's pet goat is named Snorri.", False),
    ],
)
def test_a_text_of_several_statements_tells_whose_a_value_is_by_the_name_at_it_or_the_last_before(
    text: str, told: bool
) -> None:
    turns = (
        Turn(id="D1:1", speaker="Isak", text="My pet goat is Snorri."),
        Turn(id="D1:2", speaker="Petra", text="Ha!"),
    )
    talk = Conversation(id="t", speakers=("Isak", "Petra"), sessions=(DialogueSession(id="D1", turns=turns),))
    asked = Question(id="q", question="What does Isak call his goat?", answers=("Snorri",), evidence=("D1:1",))
    vocabulary = Vocabulary(turn.text for turn in turns)
    (need,) = needs_of(asked, talk, vocabulary)
    assert Grader(asked, talk, vocabulary).tells_whose(need, text) == told
