from __future__ import annotations

import pytest

from attribution.text.content import Vocabulary, content_of, is_date, text_of, time_words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("painting", "painted"),
        ("hiking", "hikes"),
        ("running", "runs"),
        ("agencies", "agency"),
        ("Mara's tortoise", "tortoises of Mara"),
        ("on the previous day", "yesterday"),
        ("2023-05-07", "7th of May, 2023"),
        ("twelve eggs", "12 egg"),
    ],
)
def test_inflection_and_notation_do_not_change_content(one: str, other: str) -> None:
    assert content_of(one) == content_of(other)


@pytest.mark.parametrize(("one", "other"), [("sister", "brother"), ("14 jars", "40 jars"), ("Tuesday", "Thursday")])
def test_different_content_stays_different(one: str, other: str) -> None:
    assert content_of(one) != content_of(other)


def test_chinese_is_compared_by_pairs_of_characters() -> None:
    assert content_of("北京") <= content_of("他住在北京。")
    assert not content_of("京北") & content_of("他住在北京。")


def test_rare_words_weigh_more_than_common_ones() -> None:
    vocabulary = Vocabulary(["the tortoise sleeps", "the tortoise eats", "the tortoise wins a marathon"])
    needed = content_of("tortoise marathon")
    assert (
        vocabulary.coverage(needed, content_of("marathon")) > 0.5 > vocabulary.coverage(needed, content_of("tortoise"))
    )


def test_a_missing_number_is_not_made_up_for_by_words() -> None:
    vocabulary = Vocabulary(["jars of beetroot relish"])
    assert vocabulary.coverage(content_of("22 jars of beetroot relish"), content_of("jars of beetroot relish")) < 0.5


def test_coverage_of_nothing_is_nothing() -> None:
    assert Vocabulary([]).coverage(frozenset(), content_of("anything")) == 0.0


@pytest.mark.parametrize("text", ["7 May 2023", "in May", "last week", "2022", "Thursday"])
def test_times_are_known_as_such(text: str) -> None:
    assert is_date(text)
    assert time_words(text)


def test_may_is_a_month_only_as_a_name() -> None:
    assert "may" in content_of("camping in May")
    assert "may" not in content_of("she may go camping")


def test_structured_values_give_their_words() -> None:
    assert text_of({"memory": "likes figs", "tags": ["food", None, 3], "seen": True}) == "likes figs\nfood\n3"


def test_lines_and_time_stamps_are_read_each_for_itself() -> None:
    line = "1:51 pm on 15 July, 2023: Mara moved to Oslo 2 weeks ago."
    context = f"{line}\nJonas has a tortoise."
    assert content_of(line) == content_of("1:51 pm on 15 July, 2023:") | content_of("Mara moved to Oslo 2 weeks ago.")
    assert content_of(context) == content_of(line) | content_of("Jonas has a tortoise.")


@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_the_vocabulary_of_a_past_is_that_of_its_texts_alone(count: int) -> None:
    texts = ["Mara has a tortoise", "the tortoise sleeps", "Mara sleeps in Oslo", "Oslo is far", "Ich wohne in Oslo"]
    past, alone = Vocabulary(texts).past(texts[:count]), Vocabulary(texts[:count])
    words = {word for text in texts for word in content_of(text)}
    assert {word: past.weight(word) for word in words} == {word: alone.weight(word) for word in words}


def test_the_vocabulary_of_other_texts_than_the_first_is_their_own() -> None:
    texts = ["Mara has a tortoise", "the tortoise sleeps"]
    assert Vocabulary(texts).past(texts[1:]).weight("mara") == Vocabulary(texts[1:]).weight("mara")
    german = ["Ich bin gestern mit der Bahn nach Hause gefahren.", "Das war die Reise, die ich mir immer wünschte."]
    assert Vocabulary([*texts, *german]).past(texts).language == "en"
