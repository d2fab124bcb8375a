from __future__ import annotations

import pytest

from attribution.judging.words import METRICS, judge, judge_reply
from attribution.text.tokens import normalise, word_count
from tracing.errors import ConfigError
from tracing.systems.conversations import Question


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The Wine-Crate!", "wine crate"),
        ("It is 22.", "twenty-two"),
        ("it is twenty two", "22"),
        ("She paid 1,200.", "1200"),
        ("１２ eggs", "twelve eggs"),
        ("她住在北京。", "北京"),
        ("a", "A"),
    ],
)
def test_case_punctuation_articles_numbers_and_scripts_do_not_decide(reply: str, answer: str) -> None:
    assert judge(reply, [answer]).contains == 1.0


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("twenty-two", "20"),
        ("twenty-two", "two"),
        ("pineapple", "apple"),
        ("tart of honey", "honey tart"),
        ("3.5", "35"),
    ],
)
def test_what_only_looks_alike_is_not_contained(reply: str, answer: str) -> None:
    assert judge(reply, [answer]).contains == 0.0


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("서울", "저는 서울에서 살고 있습니다."),
        ("고양이", "고양이를 키워요"),
        ("กรุงเทพ", "เธออยู่ที่กรุงเทพค่ะ"),
        ("القاهرة", "تعيش في القاهره"),
        ("مُحَمَّد", "محمد"),
        ("8", "٨"),
        ("1500", "١٬٥٠٠"),
        ("12", "१२"),
        ("ירושלים", "היא גרה בירושלים"),
        ("שָׁלוֹם", "שלום"),
        ("İstanbul", "ISTANBUL"),
        ("ısırgan", "ISIRGAN"),
        ("Казань", "Она живёт в Казани."),
        ("ёлка", "елка"),
        ("Київ", "у Києві"),
        ("ΑΘΗΝΑ", "Αθήνα"),
        ("blaue Vase", "In der blauen Vase"),
        ("die blaue Vase", "eine blaue Vase"),
        ("die rote Tasche", "In einer roten Tasche"),
        ("１２ ｅｇｇｓ", "twelve eggs"),
        ("İstanbul", "istanbul'da yaşıyor."),
        ("İzmir", "İzmir’de"),
        ("Ayşe'nin", "Ayşe"),
        ("Ankara'ya", "Ankara'da"),
        ("5월 3일", "5월 3일에요"),
        ("수지", "수지랑요"),
        ("Mein Bruder", "Meinem Bruder"),
        ("Äpfel", "Aepfel"),
        ("Mueller", "Frau Müller"),
    ],
)
def test_the_same_word_is_right_in_the_forms_of_its_language(answer: str, reply: str) -> None:
    assert judge(reply, [answer]).score == 1.0


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("강아지", "고양이를 키워요"),
        ("เชียงใหม่", "กรุงเทพ"),
        ("दिल", "दल"),
        ("חיפה", "תל אביב"),
        ("Москва", "Казань"),
        ("blaue Vase", "blaue Vasen"),
        ("blaue Vase", "In der grünen Vase"),
        ("Die Hard", "hard"),
        ("large car", "a larger car"),
        ("8", "٩"),
        ("Ankara", "İzmir'de"),
        ("Meinem Bruder", "Seinem Bruder"),
        ("Hawaii", "Hawaa'i"),
    ],
)
def test_another_word_is_wrong_in_every_language(answer: str, reply: str) -> None:
    assert judge(reply, [answer]).contains == 0.0


@pytest.mark.parametrize(
    ("asked", "answer", "reply"),
    [
        ("¿De qué color es el perro?", "el perro negro", "Un perro negro"),
        ("Quel est le chien de Marie ?", "le chien noir", "Un chien noir"),
        ("Was kaufte sie?", "ein rotes Fahrrad", "Das rote Fahrrad"),
        ("Wie viele Fliesen hat er gekauft?", "1.500 Fliesen", "1500 Fliesen"),
    ],
)
def test_a_reply_is_judged_in_the_language_of_its_question(asked: str, answer: str, reply: str) -> None:
    question = Question(id="q", question=asked, answers=(answer,))
    assert judge_reply(question, reply).score == 1.0


def test_a_long_thai_reply_is_long_without_spaces() -> None:
    assert word_count("เธออยู่ที่กรุงเทพค่ะ" * 4) > 12 > word_count("กรุงเทพ")


def test_any_accepted_form_is_enough_and_the_best_counts() -> None:
    judged = judge("papaya", ["mashed papaya", "papaya"])
    assert (judged.score, judged.em, judged.f1) == (1.0, 1.0, 1.0)


def test_a_long_reply_holds_the_answer_but_does_not_pass() -> None:
    reply = "As far as I can tell from all of the memories it may be radicchio"
    judged = judge(reply, ["radicchio"])
    assert (judged.score, judged.contains) == (0.0, 1.0)
    assert judge(" ".join(reply.split()[-12:]), ["radicchio"]).score == 1.0


def test_each_metric_gives_its_own_measure() -> None:
    scores = {metric: judge("fresh radicchio leaves", ["radicchio"], metric).score for metric in METRICS}
    assert scores == {"short_contains": 1.0, "em": 0.0, "f1": 0.5, "contains": 1.0}


@pytest.mark.parametrize("reply", ["", "   ", "?!"])
def test_nothing_said_matches_nothing(reply: str) -> None:
    judged = judge(reply, ["radicchio", "", "?"])
    assert (judged.score, judged.em, judged.f1, judged.contains) == (0.0, 0.0, 0.0, 0.0)


def test_an_unknown_metric_is_refused_with_the_names() -> None:
    with pytest.raises(ConfigError, match=r"bleu.*short_contains.*contains"):
        judge("x", ["x"], "bleu")


def test_normalising_twice_changes_nothing() -> None:
    once = normalise("The twenty-one Dentist's cabinets, 3.5 & more — on May 7th")
    assert normalise(" ".join(once)) == once
