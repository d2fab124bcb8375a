"""What no longer holds follows from what a question says of itself, never from the label it is counted under."""

from __future__ import annotations

import pytest

from attribution.survival.needs import outdated_value
from attribution.text.content import Vocabulary
from attribution.text.languages.reading_language import language_of, reading
from attribution.text.phrases import is_unknowable
from tracing.systems.conversations import Conversation, Question


@pytest.mark.parametrize(
    ("given", "outdated"),
    [
        ({"kind": "moved", "supersedes": True}, True),
        ({"kind": "withdrawn", "answers": ["that was called off"], "unanswerable": True}, True),
        ({"kind": "updated", "supersedes": False}, False),
        ({"kind": "updated"}, True),
        ({"kind": "moved"}, False),
    ],
)
def test_an_outdated_value_is_looked_for_where_the_question_says_so(
    pets: Conversation, given: dict[str, object], outdated: bool
) -> None:
    asked = {"answers": ["old suitcase"], "evidence": ["D2:1"], "near_miss": {"turn": "D1:3", "value": "wine crate"}}
    question = Question.model_validate({"id": "q", "question": "Where does the tortoise sleep?", **asked, **given})
    vocabulary = Vocabulary(turn.text for turn in pets.turns())
    found = outdated_value(question, pets, vocabulary)
    assert (found is not None and found.label == "wine crate") is outdated


def test_a_question_may_be_unanswerable_in_any_words() -> None:
    question = Question(id="q", question="?", answers=("that was called off",), kind="trick", unanswerable=True)
    assert is_unknowable(question)
    assert not is_unknowable(question.model_copy(update={"unanswerable": False}))


@pytest.mark.parametrize(
    ("asked", "answer", "unknowable"),
    [
        ("Where does Mara live?", "unknown", True),
        ("Where does Mara live?", "I don't know.", True),
        ("Where does Mara live?", "不知道", True),
        ("Where does Mara live?", "Not mentioned in the conversation", True),
        ("What colour is Mara's car?", "The colour of Mara's car is still unknown", True),
        ("Where does Mara live?", "Unknown; not provided by the user.", True),
        ("Where does Mara live?", "The conversation doesn't say", True),
        ("Where does Mara live?", "N/A", True),
        ("Where does Mara live?", "No such information is given in the chat history.", True),
        ("Where does Mara live?", "Mara never told anyone.", True),
        ("Where does Mara live?", "Insufficient information to answer", True),
        ("Where does Mara live?", "keine Angabe", True),
        ("Where does Mara live?", "未提及", True),
        ("Wo wohnt Mara?", "Geht aus dem Gespräch nicht hervor.", True),
        ("Wo wohnt Mara?", "Unbekannt; vom Nutzer nicht angegeben.", True),
        ("Wo wohnt Mara?", "k. A.", True),
        ("¿Dónde vive Mara?", "La conversación no lo dice.", True),
        ("¿Dónde vive Mara?", "No mencionado", True),
        ("Où habite Mara ?", "Pas d'information", True),
        ("Où habite Mara ?", "Non précisé par l'utilisateur", True),
        *(
            ("Where does Mara live?", answer, True)
            for answer in (
                "Not enough info",
                "It can't be inferred from the chat logs",
                "The assistant does not have this information.",
                "That information isn't in my memory.",
                "There's nothing about that in the conversation.",
                "Unable to determine",
                "It is impossible to say.",
                "Mara's address is not known",
                "I'm not aware of that",
                "no_info",
                "TBD",
                "null",
                "NaN",
                "-",
            )
        ),
        ("Wo wohnt Mara?", "Keine Information", True),
        ("Wo wohnt Mara?", "Lässt sich aus dem Chat nicht ableiten", True),
        ("Wo wohnt Mara?", "Nicht beantwortbar", True),
        ("¿Dónde vive Mara?", "No hay suficiente información", True),
        ("¿Dónde vive Mara?", "El usuario no lo proporcionó", True),
        ("¿Dónde vive Mara?", "Imposible de saber", True),
        ("Où habite Mara ?", "Pas assez d'informations", True),
        ("Où habite Mara ?", "Impossible à dire", True),
        ("小丽住在哪里？", "对话中没有提到。", True),
        ("小丽住在哪里？", "信息不足", True),
        ("美咲はどこに住んでいますか？", "会話からは分からない", True),
        ("美咲はどこに住んでいますか？", "情報が不足しています", True),
        ("What does Mara's landlord lack?", "He does not have a bell", False),
        ("What can Mara not do?", "She is unable to determine colours", False),
        ("小丽为什么生气？", "小明没有提到她的生日", False),
        ("Did Ana tell Bob about the party?", "No, she did not tell him.", False),
        ("Did Ana tell Bob?", "She did not tell him.", False),
        ("Why was Ana angry?", "She was not told about the trip", False),
        ("What pets does Ana have?", "None", False),
        ("What is the symbol of sodium?", "Na", False),
        ("Which novel is Mara reading?", "The Forgotten Garden", False),
        ("What did Mara visit in Paris?", "the Tomb of the Unknown Soldier", False),
        ("Which contract does Mara lack?", "No record deal", False),
        ("What did Mara's phone come with?", "No data plan", False),
    ],
)
def test_an_answer_that_says_more_than_that_it_is_unknown_is_an_answer(
    asked: str, answer: str, unknowable: bool
) -> None:
    with reading(language_of([asked, answer])):
        assert is_unknowable(Question(id="q", question=asked, answers=(answer,))) is unknowable
