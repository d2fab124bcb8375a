"""Texts are read in their conversation's language; how well is counted on judgements that no rule was tuned on."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
from reading_figures import counted

from attribution.survival.gold import Gold
from attribution.text.content import Vocabulary, content_of
from attribution.text.dates import moment, spans_of
from attribution.text.languages.language_data import Language
from attribution.text.languages.reading_language import language, language_of, reading
from attribution.text.phrases import says_retracted, says_unknown
from attribution.text.question_kinds import expected_count, is_count, is_literal, is_yes_or_no
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn

LEAST_BY_KIND, LEAST_BY_LANGUAGE = 0.93, 0.95
"""The rules got 315 of the 322 right (44 of 45 withdrawals, 68 of 71 words); before them, it were 125."""


def test_held_out_judgements_come_out_right_in_every_kind_and_language() -> None:
    figures = counted("held_out")
    for least, part in ((LEAST_BY_KIND, 0), (LEAST_BY_LANGUAGE, 1)):
        right, whole = Counter[str](), Counter[str]()
        for key, (ok, of) in figures.items():
            right[key[part]] += ok
            whole[key[part]] += of
        assert {name: right[name] / whole[name] for name in whole if right[name] < least * whole[name]} == {}
    assert sum(of for _, of in figures.values()) == 322


def _german() -> Conversation:
    turns = (
        Turn(id="D1:1", speaker="Ana", text="Ich habe mir gestern zwei Katzen aus dem Tierheim geholt, Momo und Pina."),
        Turn(id="D1:2", speaker="Jonas", text="Wie schön! Ich bin mit dem Rad an den See gefahren."),
        Turn(id="D1:3", speaker="Ana", text="Vor zwanzig Jahren hatte ich schon einmal welche."),
    )
    session = DialogueSession(id="D1", time="16. Mai 2024, 18:30", turns=turns)
    return Conversation(id="g", speakers=("Ana", "Jonas"), sessions=(session,))


@pytest.mark.parametrize(
    ("asked", "answer", "evidence", "carrying", "other"),
    [
        (
            "Welche Tiere holte Ana aus dem Tierheim?",
            "zwei Katzen",
            "D1:1",
            "Ana holt sich 2 Katzen aus einem Tierheim.",
            "Ana holt sich 2 Kater aus einem Tierheim.",
        ),
        (
            "Wann holte Ana die Katzen?",
            "15.5.2024",
            "D1:1",
            "Ana hat am 15. Mai 2024 Katzen aus dem Tierheim geholt.",
            "Ana hat am 5. Mai 2024 Katzen aus dem Tierheim geholt.",
        ),
        (
            "Wann hatte Ana schon einmal Katzen?",
            "2004",
            "D1:3",
            "Ana hatte schon 2004 einmal Katzen.",
            "Ana hatte schon 2014 einmal Katzen.",
        ),
    ],
)
def test_what_a_german_fact_carries_is_read_in_german(
    asked: str, answer: str, evidence: str, carrying: str, other: str
) -> None:
    talk = _german()
    question = Question(id="q", question=asked, answers=(answer,), evidence=(evidence,))
    gold = Gold(question, talk, Vocabulary(turn.text for turn in talk.turns()), verbatim=False)
    assert gold.language == "de"
    assert gold.carries_any(carrying)
    assert not gold.carries_any(other)
    assert language() == "en"


def test_each_thread_reads_in_its_own_language() -> None:
    def stems(one: Language) -> frozenset[str]:
        with reading(one):
            return frozenset().union(*(content_of(text) for text in ["die Häuser", "once"] * 50))

    with ThreadPoolExecutor(2) as threads:
        german, spanish = threads.map(stems, ("de", "es"))
    assert german == {"haus", "once"}
    assert "11" in spanish
    assert language() == "en"


@pytest.mark.parametrize("texts", [[], ["123 :-)"], ["Toyota Corolla, Tokyo"], ["နေပြည်တော်"], ["Ja!", "Is that all?"]])
def test_a_language_that_is_unclear_is_english(texts: list[str]) -> None:
    assert language_of(texts) == "en"


@pytest.mark.parametrize("one", ["en", "de", "es", "fr"])
def test_chinese_and_japanese_are_read_alike_in_every_language(one: Language) -> None:
    with reading(one):
        assert content_of("北京") <= content_of("他住在北京。")
        (span,) = spans_of("昨天去了", date(2024, 5, 16))
        assert date.fromordinal(span[0]) == date(2024, 5, 15)


def test_a_time_stamp_with_two_readings_gives_no_day() -> None:
    assert moment("5/8/2024 10:00") is None
    assert moment("25/8/2024 10:00") == date(2024, 8, 25)
    with reading("de"):
        assert moment("5.8.2024, 10:00") == date(2024, 8, 5)


@pytest.mark.parametrize(
    ("one", "reply"),
    [("de", "Das weiß ich nicht."), ("es", "No lo sé."), ("fr", "Je ne sais pas."), ("fr", "I don't know.")],
)
def test_a_reply_that_does_not_know_says_so_in_its_language_or_in_english(one: Language, reply: str) -> None:
    with reading(one):
        assert says_unknown(reply)
        assert not says_unknown("Toledo")


@pytest.mark.parametrize(
    ("one", "kept", "plain"),
    [
        ("en", "Please keep my address secret.", "They found a secret garden."),
        ("de", "Bitte halte meine Adresse geheim.", "Sie fanden einen geheimen Garten."),
        ("es", "Por favor, mantén mi dirección en secreto.", "Encontraron un jardín secreto."),
        ("fr", "Garde mon adresse secrète, s'il te plaît.", "Ils ont trouvé un jardin secret."),
    ],
)
def test_what_is_to_be_kept_secret_is_taken_back_in_every_language(one: Language, kept: str, plain: str) -> None:
    with reading(one):
        assert says_retracted(kept)
        assert not says_retracted(plain)


@pytest.mark.parametrize(
    ("one", "asked", "answer"),
    [
        ("de", "Wie viele Kinder hat Ana?", "drei"),
        ("es", "¿Cuántos hijos tiene Ana?", "tres"),
        ("fr", "Combien d'enfants a Ana ?", "trois"),
    ],
)
def test_a_number_of_things_is_asked_for_in_every_language(one: Language, asked: str, answer: str) -> None:
    question = Question(id="q", question=asked, answers=(answer,))
    with reading(one):
        assert is_count(question)
        assert expected_count(question) == 3
        assert is_literal(question)
        assert not is_yes_or_no(question)


def test_a_german_noun_is_no_name_to_be_given_literally() -> None:
    with reading("de"):
        assert is_literal(Question(id="q", question="Wie heißt der Hund?", answers=("Joost",)))
        assert not is_literal(Question(id="q", question="Wo liegt das Buch?", answers=("hinter den Büchern",)))
        assert not is_literal(Question(id="q", question="Wo waren die Katzen?", answers=("Häuser",)))
