"""Tokens and numbers: one answer to what a text contains, wherever it is asked."""

from __future__ import annotations

import ast
from datetime import date
from pathlib import Path

import pytest

from attribution.cases import Case
from attribution.judging.words import judge
from attribution.text.content import content_of
from attribution.text.dates import spans_of
from attribution.text.languages.language_data import Language
from attribution.text.languages.reading_language import reading
from attribution.text.numbers import cjk_number, quantity_of
from attribution.text.tokens import contains, word_count, words
from experiments.systems.fact_memory import FactMemory
from optimizer.proposers.examples import Example, symptoms_of
from tracing.systems.conversations import NearMiss, Question
from tracing.systems.layouts import Item

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("He has 37 rows of vines.", "thirty-seven", True),
        ("Thimbles and all.", "the thimbles", True),
        ("Ludo lives behind his cousin Manfred's place.", "cousin Manfred", True),
        ("A dentist's cabinet", "dentist cabinet", True),
        ("MCDONALDS it is", "McDonald's", True),
        ("他住在北京。", "北京", True),
        ("Manfredo lives there.", "Manfred", False),
        ("twenty-two drawers", "20", False),
        ("anything", "?!", False),
    ],
)
def test_judge_and_proposers_agree_on_what_a_text_contains(text: str, value: str, expected: bool) -> None:
    assert contains(text, value) is expected
    assert judge(text, [value]).contains == float(expected)
    near = NearMiss(turn="D1:2", value=value)
    question = Question(id="q", question="?", answers=("nothing else",), evidence=("D1:1",), near_miss=near)
    case = Case("c", question, text, judge(text, question.answers))
    made = Item("reply", "reply", "prediction", text)
    example = Example(FactMemory().prompts["answer"], case, None, {}, (made,))
    assert ("near miss" in symptoms_of(example, "answer")) is expected


def test_half_of_a_surrogate_pair_is_no_word_and_hides_none() -> None:
    assert words("\ud83d she owns twenty-two clocks") == words("she owns 22 clocks")


@pytest.mark.parametrize(
    ("one", "text", "number"),
    [
        ("en", "half a dozen eggs", "6"),
        ("en", "two dozen eggs", "24"),
        ("de", "ein Dutzend Eier", "12"),
        ("de", "ein halbes Dutzend Eier", "6"),
        ("es", "media docena de huevos", "6"),
        ("fr", "une demi-douzaine d'œufs", "6"),
    ],
)
def test_a_dozen_is_a_number_in_every_language(one: Language, text: str, number: str) -> None:
    with reading(one):
        assert words(text)[0] == number
        assert len(words(text)) == 2


def test_words_leave_possessive_endings_out() -> None:
    assert words("Mara's twenty-two tortoises") == ("mara", "22", "tortoises")


def test_a_reply_is_as_long_as_its_words_and_half_its_cjk_characters() -> None:
    assert word_count("he lives in 北京市 now") == 6


@pytest.mark.parametrize(
    ("text", "number"),
    [("a couple of", 2), ("a few", 3), ("an", 1), (None, 1), ("12", 12), ("Twenty-two", 22), ("nineteen", 19)],
)
def test_a_quantity_means_a_number_in_digits_words_or_vaguely(text: str | None, number: int) -> None:
    assert quantity_of(text) == number


def test_a_cjk_numeral_means_a_number() -> None:
    assert [cjk_number(one) for one in ("二十三", "二〇二三", "十二", "三百五", "两千")] == [23, 2023, 12, 305, 2000]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("twenty years ago", "2003-01-01", "2003-12-31"),
        ("fifteen days ago", "2023-05-10", "2023-05-10"),
        ("twenty-two days ago", "2023-05-03", "2023-05-03"),
        ("十二年前", "2011-01-01", "2011-12-31"),
        ("二十天前", "2023-05-05", "2023-05-05"),
    ],
)
def test_dates_know_every_number_that_tokens_know(text: str, first: str, last: str) -> None:
    (span,) = spans_of(text, date(2023, 5, 25))
    assert tuple(date.fromordinal(day).isoformat() for day in span) == (first, last)
    assert content_of("twenty-two days") == content_of("22 days")


@pytest.mark.slow
def test_number_words_months_and_weekdays_are_listed_in_one_place() -> None:
    listed: dict[str, list[str]] = {"seventeen": [], "thursday": [], "november": [], "tuesday": []}
    for package in ("tracing", "attribution", "optimizer", "experiments"):
        for path in sorted((ROOT / package).rglob("*.py")):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            texts = [
                node.value.lower() for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
            ]
            for word, where in listed.items():
                if any(word in text.split() for text in texts):
                    where.append(path.name)
    assert listed == {
        "seventeen": ["numbers.py"],
        "thursday": ["calendar_names.py"],
        "november": ["calendar_names.py"],
        "tuesday": ["calendar_names.py"],
    }
