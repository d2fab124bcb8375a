"""Requests to remember what is said, thanks and greetings are nothing that must survive."""

from __future__ import annotations

import pytest
from scripted_memory import FACT_MEMORY, RAG, ScriptedMemory

from attribution.failures import NOT_KNOWN
from attribution.text.languages.language_data import Language
from attribution.text.languages.reading_language import reading
from attribution.text.phrases import says_retracted, without_courtesies
from tracing.systems.conversations import Conversation, Question

SAID: dict[Language, tuple[str, str, str, str, str]] = {
    "en": (
        "I am allergic to peanuts",
        "Ana is allergic to peanuts.",
        "What is Ana allergic to?",
        "peanuts",
        "No idea.",
    ),
    "de": (
        "Ich bin gegen Erdnüsse allergisch",
        "Ana ist gegen Erdnüsse allergisch.",
        "Wogegen ist Ana allergisch?",
        "Erdnüsse",
        "Ich weiß es nicht.",
    ),
    "es": (
        "Soy alérgica a los cacahuetes",
        "Ana es alérgica a los cacahuetes.",
        "¿A qué es alérgica Ana?",
        "cacahuetes",
        "No lo sé.",
    ),
    "fr": (
        "Je suis allergique aux cacahuètes",
        "Ana est allergique aux cacahuètes.",
        "À quoi Ana est-elle allergique ?",
        "cacahuètes",
        "Je ne sais pas.",
    ),
}
OTHERS: dict[Language, tuple[str, ...]] = {
    "en": ("Good morning, I had tea.", "The bus was late again.", "It rains a lot here.", "I like my new lamp."),
    "de": ("Guten Morgen, ich hatte Tee.", "Der Bus kam wieder zu spät.", "Hier regnet es viel.", "Ich mag die Lampe."),
    "es": ("Buenos días, tomé té.", "El autobús llegó tarde.", "Aquí llueve mucho.", "Me gusta mi lámpara nueva."),
    "fr": (
        "Bonjour, j'ai bu du thé.",
        "Le bus était en retard.",
        "Il pleut beaucoup ici.",
        "J'aime ma nouvelle lampe.",
    ),
}
ASKING: list[tuple[Language, str]] = [
    ("en", "{}, please remember that."),
    ("en", "Don’t forget: {}."),
    ("en", "Just so you know, {}."),
    ("en", "{}. Keep that in mind, okay?"),
    ("en", "By the way, {}, could you make a note of it?"),
    ("en", "Hi! {}. Thanks for noting it down!"),
    ("en", "I want you to remember that {}."),
    ("de", "{}, bitte merk dir das."),
    ("de", "Vergiss bitte nicht: {}."),
    ("de", "Nur damit du es weißt, {}."),
    ("de", "{}. Behalte das bitte im Kopf."),
    ("de", "Übrigens, {}, schreib dir das auf."),
    ("es", "{}, por favor recuerda eso."),
    ("es", "No olvides que {}."),
    ("es", "{}. Tenlo en cuenta, por favor."),
    ("es", "Por cierto, {}, apúntalo."),
    ("fr", "{}, souviens-toi de ça s'il te plaît."),
    ("fr", "N'oublie pas que {}."),
    ("fr", "{}. Garde ça en tête."),
    ("fr", "Au fait, {}, note-le bien."),
]


def talk(language: Language, first: str) -> Conversation:
    texts = (first, *OTHERS[language])
    turns = [{"id": f"D1:{at}", "speaker": ("Ana", "Ben")[at % 2], "text": text} for at, text in enumerate(texts)]
    session = {"id": "D1", "time": "2024-05-01", "turns": turns}
    return Conversation.model_validate({"id": "ana", "speakers": ["Ana", "Ben"], "sessions": [session]})


@pytest.mark.parametrize(("language", "asking"), ASKING)
def test_what_was_kept_without_the_request_to_remember_it_was_not_lost(language: Language, asking: str) -> None:
    said, fact, asked, answer, reply = SAID[language]
    conversation = talk(language, asking.format(said))
    for hit, due in (("m1", "ResponseError"), ("m2", "RetrievalError")):
        for right in (answer, NOT_KNOWN):
            question = Question(id="q", question=asked, answers=(right,), evidence=("D1:0",))
            with ScriptedMemory(conversation, FACT_MEMORY) as memory:
                memory.remember(("D1:0",), fact)
                memory.remember(("D1:1",), "Ben: 1.")
                assert memory.blame(memory.answer(question, [hit], reply)).error_type == due
        question = Question(id="q", question=asked, answers=(answer,), evidence=("D1:0",))
        with ScriptedMemory(conversation, RAG) as memory:
            memory.chunk(("D1:0",), f"Ana: {said}.")
            memory.chunk(("D1:1",))
            assert memory.blame(memory.answer(question, [hit], reply)).error_type == due


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I remember my grandmother's garden."),
        ("en", "I keep it in the fridge and write notes to Ben."),
        ("en", "Ana saved that for later."),
        ("de", "Ich merke mir Namen schlecht."),
        ("de", "Ben behält das Auto."),
        ("es", "Ana recuerda su infancia."),
        ("fr", "Ben garde le chien de sa sœur."),
    ],
)
def test_what_somebody_remembers_or_keeps_is_told_and_no_request(language: Language, text: str) -> None:
    with reading(language):
        assert without_courtesies(text) == text


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Please forget what I told you about the dog."),
        ("de", "Bitte vergiss, was ich über den Hund gesagt habe."),
        ("es", "Por favor, olvida lo que te dije del perro."),
        ("fr", "S'il te plaît, oublie ce que je t'ai dit du chien."),
    ],
)
def test_a_request_to_forget_is_no_courtesy(language: Language, text: str) -> None:
    with reading(language):
        assert says_retracted(without_courtesies(text))


def test_a_text_of_nothing_but_courtesies_stays() -> None:
    assert without_courtesies("Thank you so much!") == "Thank you so much!"
