"""Conversations in languages whose reading was not measured: right where that is sure, and never confident."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scripted_memory import ScriptedMemory
from scripted_server import ScriptedServer

from attribution.cases import Attribution, Blame
from attribution.text.content import content_of
from attribution.text.languages.reading_language import is_read
from benchmarks.matching.embedding_matcher import by_meaning
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation, Question

CHENGDU = ("我去年搬到了成都。", "小丽住在哪里？", "成都")
KAZAN = ("Я живу в Казани.", "Где живёт Лена?", "Казань")


KRAKOW = ("Przeprowadziłam się i mieszkam w Krakowie.", "Gdzie mieszka teraz Ann?", "w Krakowie")


def blame(told: tuple[str, str, str], fact: str, reply: str) -> Blame:
    (found,) = attribution(told, fact, reply).decisive
    return found


def attribution(told: tuple[str, str, str], fact: str, reply: str) -> Attribution:
    said, asked, gold = told
    with ScriptedMemory(talk_of(said)) as memory:
        memory.remember(["D1:1"], fact)
        question = Question(id="q", question=asked, answers=(gold,), evidence=("D1:1",))
        return memory.attribute(memory.answer(question, ["m1"], reply))


def talk_of(said: str) -> Conversation:
    speaker = "Лена" if said == KAZAN[0] else "小丽" if said == CHENGDU[0] else "Ann"
    turns = [{"id": "D1:1", "speaker": speaker, "text": said}]
    session = {"id": "D1", "time": "16 May 2024", "turns": turns}
    return Conversation.model_validate({"id": "c", "speakers": [speaker], "sessions": [session]})


@pytest.mark.parametrize(
    ("told", "fact", "reply", "kind"),
    [
        (CHENGDU, "小丽住在成都。", "北京", "ResponseError"),
        (CHENGDU, "小丽搬家了。", "不知道", "ExtractionError"),
        (KAZAN, "Лена живёт в Казани.", "Москва", "ResponseError"),
        (KAZAN, "Лена переехала.", "не знаю", "ExtractionError"),
    ],
)
def test_a_verdict_in_a_measured_language_is_right_and_says_that_its_confidence_was_not_fitted_there(
    told: tuple[str, str, str], fact: str, reply: str, kind: str
) -> None:
    found = blame(told, fact, reply)
    assert found.error_type == kind
    assert "reading was measured" not in found.reason
    assert "not calibrated on such cases" in found.reason


def test_what_a_text_lacks_is_not_known_in_a_language_that_was_not_measured() -> None:
    assert blame(KRAKOW, "Ann mieszka w Krakowie.", "Lublin").error_type == "ResponseError"
    # The fact may hold it in another form, and so may the reply.
    for fact, reply in (("Ann przeprowadziła się.", "nie wiem"), ("Ann mieszka w Krakowie.", "Krakowa")):
        assert "would be a guess" in (attribution(KRAKOW, fact, reply).abstained or "")


def test_a_date_is_not_read_in_a_language_of_which_words_are() -> None:
    told = ("Düğünüm 12 Mayıs 2024'te.", "Düğün ne zaman?", "12 Mayıs 2024")
    assert "would be a guess" in (attribution(told, "Düğün yakında.", "bilmiyorum").abstained or "")


@pytest.mark.parametrize(
    ("said", "asked", "gold", "reply", "read"),
    [
        ("Przeprowadziłam się do Krakowa.", "Gdzie mieszka Ann?", "w Krakowie", "Lublin", False),
        ("Muutin viime vuonna Tampereelle.", "Missä Ann asuu?", "Tampere", "Oulu", True),
        ("Kedimin adı Pamuk.", "Kedinin adı ne?", "Pamuk", "Duman", True),
        ("Mia sorella lavora in ospedale.", "Dove lavora la sorella?", "in ospedale", "a scuola", False),
        ("Comprei uma bicicleta.", "O que a Ann comprou?", "uma bicicleta", "um carro", False),
        ("Ik ben naar Utrecht verhuisd.", "Waar woont Ann?", "Utrecht", "Breda", False),
        ("Jag flyttade till Lund.", "Var bor Ann?", "Lund", "Kalmar", False),
        ("Anul trecut m-am mutat la Cluj.", "Unde locuiește Ann?", "Cluj", "Arad", False),
        ("I moved to Kraków.", "Where does Ann live?", "Kraków", "Lublin", True),
        ("Took up the hurdy-gurdy!", "Which instrument?", "hurdy-gurdy", "flute", True),
        ("Mochi, my cat, loves fuet.", "Whose cat is Mochi?", "Ann", "Bo", True),
        ("Habe Nussallergie.", "Wogegen ist Ann allergisch?", "Nüsse", "Milch", True),
        ("Compré una bicicleta roja.", "¿Qué compró Ann?", "una bicicleta", "un coche", True),
        ("J'ai acheté un vélo rouge.", "Qu'a acheté Ann ?", "un vélo", "une voiture", True),
    ],
)
def test_few_words_tell_with_the_question_whether_their_language_is_read(
    said: str, asked: str, gold: str, reply: str, read: bool
) -> None:
    found = attribution((said, asked, gold), said, reply)
    reasons = [found.abstained or "", *(blamed.reason for blamed in found.decisive)]
    assert any("reading was measured" in reason for reason in reasons) is not read
    assert all(blamed.confidence <= 0.5 for blamed in found.decisive) is not read


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Казань", "в Казани", True),
        ("кошку", "кошка", True),
        ("Москва", "Казань", False),
        ("成都", "北京", False),
        ("首都", "首", False),
    ],
)
def test_cases_of_words_and_signs_within_names_are_read(one: str, other: str, same: bool) -> None:
    assert (content_of(one) <= content_of(other)) is same


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Yesterday I went to the market with my sister and we bought some apples." * 3, True),
        ("Gestern war ich mit meiner Schwester auf dem Markt und habe Äpfel gekauft." * 3, True),
        ("Ieri sono andata al mercato con mia sorella e abbiamo comprato delle mele per la torta." * 2, False),
        ("Ontem fui ao mercado com a minha irmã e compramos maçãs para o bolo da festa de amanhã." * 2, False),
        ("Dün kız kardeşimle pazara gittim ve elma aldık, gelecek ay Ankara'ya taşınıyorum." * 3, True),
        ("Eilen kävin siskoni kanssa torilla ja ostimme omenoita, ja ensi kuussa muutan Turkuun." * 3, True),
        ("Tegnap a nővéremmel a piacon voltunk, és almát vettünk, mert sütni akarunk." * 3, True),
        ("Вчера мы ходили на рынок.", True),
        ("Вчора ми ходили на ринок і купили яблука для її пирога.", False),
        ("Вчера бях на пазара със сестра ми и купихме ябълки.", False),
        ("昨天我去了市场。", True),
        ("어제 시장에 갔어요.", True),
        ("أمس ذهبنا إلى السوق مع أختي.", True),
        ("دیروز با خواهرم به بازار رفتم و سیب خریدیم.", False),
        ("เมื่อวานฉันไปตลาดกับน้องสาว", True),
        ("မနေ့က ဈေးသွားတယ်။", False),
        ("कल मैं बाज़ार गई थी।", False),
        ("Oslo!", True),
        ("", True),
    ],
)  # fmt: skip
def test_a_language_that_is_not_read_is_known(text: str, read: bool) -> None:
    assert is_read([text]) is read


@pytest.mark.parametrize(
    ("said", "asked", "gold", "reply", "opinion"),
    [
        (CHENGDU[0], "小丽住在哪里？", "上海", "北京", None),
        (KAZAN[0], "Где живёт Лена?", "Казань", "Москва", None),
        ("I live by the sea.", "Where does Ann live?", "上海", "北京", None),
        ("I live by the sea.", "Where does Ann live?", "by the sea", "at the coast", True),
    ],
)
def test_meaning_has_no_opinion_of_replies_in_a_language_that_is_not_read(
    said: str,
    asked: str,
    gold: str,
    reply: str,
    opinion: bool | None,
    open_access: Callable[..., ModelAccess],
    scripted_server: ScriptedServer,
) -> None:
    # A model of English finds all Chinese texts alike.
    scripted_server.embed = lambda text: [1.0]
    question = Question(id="q", question=asked, answers=(gold,))
    assert by_meaning(talk_of(said), open_access()).right(question, reply) is opinion
