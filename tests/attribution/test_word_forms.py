"""Words in languages with endings, clitics and particles, and in scripts without spaces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from attribution.judging.words import judge_reply
from attribution.text import segments, word_forms
from attribution.text.content import content_of
from attribution.text.languages import reading_language
from attribution.text.languages.language_data import Tongue
from attribution.text.languages.reading_language import is_read, language_of, reading
from attribution.text.tokens import contains, normalise
from attribution.text.word_forms import base, lower_case, same_word
from tracing.systems.conversations import Question


@pytest.mark.parametrize(
    ("tongue", "word", "other", "same"),
    [
        ("ru", "сестрой", "сестра", True),
        ("ru", "петрову", "петров", True),
        ("ru", "двух", "2", True),
        ("ru", "сестра", "брат", False),
        ("tr", "kardeşiyle", "kardeş", True),
        ("tr", "fındığa", "fıstık", False),
        ("fi", "helsingistä", "helsinki", True),
        ("fi", "sisko", "veli", False),
        ("hu", "debrecenbe", "debrecen", True),
        ("hu", "kórházban", "könyvtár", False),
        ("ar", "بالقاهره", "القاهره", True),
        ("ar", "كتابها", "كتاب", True),
        ("ar", "مكتبه", "مكتب", False),
        ("he", "לבוטנים", "בוטנים", True),
        ("he", "שורה", "מורה", False),
        ("ko", "부산에서는", "부산", True),
        ("ko", "살이에요", "살", True),
        ("ko", "스물여덟", "28", True),
        ("ko", "정은", "정", False),
    ],
)
def test_forms_of_a_word_are_one_and_other_words_are_not(tongue: Tongue, word: str, other: str, same: bool) -> None:
    assert same_word(word, other, tongue) is same
    assert same_word(other, word, tongue) is same
    # What begins with a clitic's letter is told from what lacks it only beside the other word.
    assert tongue == "he" or (base(word, tongue) == base(other, tongue)) is same


def test_turkish_has_two_letters_i() -> None:
    assert lower_case("Iğdır İzmir", "tr") == "ığdır izmir"
    assert lower_case("İzmir", "en") == "izmir"


@pytest.mark.parametrize(
    ("text", "value", "held"),
    [
        ("ชอบกินปลาทุกวัน", "ปลา", True),
        ("ชอบกินปลายข้าวทุกวัน", "ปลา", False),
        ("เธออยากได้เปียโนใหม่", "เปียโน", True),
        ("គាត់ឱ្យសៀវភៅទៅតារា។", "តា", False),
        ("京都に住んでいます。", "京都", True),
        ("東京都に住んでいます。", "京都", False),
        ("她搬到成都市了。", "成都", True),
        ("上司は渡邊さんです。", "渡辺さん", True),
        ("老板是陳先生。", "陈先生", True),
    ],
)
def test_a_value_is_in_a_text_without_spaces_from_where_a_word_begins(text: str, value: str, held: bool) -> None:
    assert contains(text, value) is held


@pytest.mark.parametrize(
    ("text", "tongue"),
    [
        ("Где живёт Лена?", "ru"),
        ("Missä Liisa asuu?", "fi"),
        ("Elif nerede yaşıyor?", "tr"),
        ("Honnan jött Zsófi?", "hu"),
        ("美咲さんはどこに住んでいますか？", "ja"),
        ("小丽住在哪里？", "zh"),
        ("¿Cuántos gatos?", "es"),
        ("Where does Işıl live, and why?", "en"),
    ],
)
def test_the_language_of_a_question_is_found(text: str, tongue: Tongue) -> None:
    assert language_of([text]) == tongue


def test_a_reply_is_read_in_the_language_of_the_question() -> None:
    question = Question(id="q", question="Missä Liisa asuu?", answers=("Tampere",))
    assert judge_reply(question, "Liisa asuu Tampereella.").score == 1
    assert judge_reply(question, "Liisa asuu Turussa.").score == 0


def test_words_of_a_text_without_spaces_are_its_content() -> None:
    with reading("th"):
        assert content_of("เขาเลี้ยงแมวสามตัว") >= {"แมว", "3"}


@pytest.fixture
def without_libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """None of the libraries that only some languages need."""
    cached = (
        segments.is_segmented,
        segments.spaced,
        segments.word_beginnings,
        word_forms.bases,
        word_forms._stemmer,
        reading_language._has_libraries,
        reading_language._is_read,
    )
    for module in (segments, word_forms, reading_language):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    for function in cached:
        function.cache_clear()
    yield
    monkeypatch.undo()
    for function in cached:
        function.cache_clear()


@pytest.mark.usefixtures("without_libraries")
def test_without_the_libraries_a_language_that_needs_them_is_not_read() -> None:
    assert not is_read(["เมื่อวานฉันไปตลาดกับน้องสาว"])
    assert not is_read(["Вчера мы ходили на рынок."])
    assert is_read(["昨天我去了市场。"])
    # Exact words are still found.
    assert contains("ฉันไปตลาดนัด", "ตลาดนัด")
    assert same_word("петров", "петров", "ru")


def test_tokens_are_words_where_none_are_written_apart() -> None:
    assert normalise("ฉันไปตลาด") == ("ฉัน", "ไป", "ตลาด")
