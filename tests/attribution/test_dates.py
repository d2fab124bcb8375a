from __future__ import annotations

from datetime import date

import pytest

from attribution.text.content import is_date
from attribution.text.dates import moment, same_time, spans_of, without_stamp
from attribution.text.languages.language_data import Language
from attribution.text.languages.reading_language import reading

SAID = date(2023, 5, 25)  # a Thursday


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("I went yesterday", "2023-05-24", "2023-05-24"),
        ("we met last Fri", "2023-05-19", "2023-05-19"),
        ("on Tuesday I ran", "2023-05-23", "2023-05-23"),
        ("two weeks ago", "2023-05-08", "2023-05-14"),
        ("last week was busy", "2023-05-18", "2023-05-24"),
        ("we go next month", "2023-06-01", "2023-06-30"),
        ("the Friday before 22 October 2023", "2023-10-20", "2023-10-20"),
        ("The week before 3June, 2023.", "2023-05-27", "2023-06-02"),
        ("the first weekend of August 2023", "2023-08-04", "2023-08-06"),
        ("the weekend after 24 May 2023", "2023-05-26", "2023-05-28"),
        ("the weekend after 27 May 2023", "2023-06-02", "2023-06-04"),
        ("two weekends after 24 May 2023", "2023-06-02", "2023-06-04"),
        ("the weekend before 24 May 2023", "2023-05-19", "2023-05-21"),
        ("seven years now", "2016-01-01", "2016-12-31"),
        ("summer 2022", "2022-06-01", "2022-08-31"),
        ("the day after tomorrow", "2023-05-27", "2023-05-27"),
        ("我昨天去了", "2023-05-24", "2023-05-24"),
        ("先週会った", "2023-05-15", "2023-05-21"),
        ("2023年5月3日", "2023-05-03", "2023-05-03"),
        ("三天前", "2023-05-22", "2023-05-22"),
        ("this May I ran", "2023-05-01", "2023-05-31"),
        ("on 2 May I ran", "2023-05-02", "2023-05-02"),
        ("I ran in March", "2023-03-01", "2023-03-31"),
    ],
)
def test_a_time_is_resolved_against_the_day_it_is_said_on(text: str, first: str, last: str) -> None:
    spans = [tuple(date.fromordinal(day).isoformat() for day in span) for span in spans_of(text, SAID)]
    named = [(a, b) for a, b in spans]
    if text == "two weeks ago":  # within days of it
        assert any(a <= "2023-05-11" <= b for a, b in named)
    else:
        assert named == [(first, last)]


def test_a_text_without_a_time_names_none_and_a_relative_one_none_without_its_day() -> None:
    assert spans_of("You may march on, in a fall", SAID) == ()
    assert spans_of("I went yesterday") == ()


@pytest.mark.parametrize(
    ("text", "language", "said", "named"),
    [
        ("Last March I ran", "en", "2024-02-02", "2023-03"),
        ("Last March I ran", "en", "2024-03-02", "2023-03"),
        ("Last January I ran", "en", "2023-12-20", "2023-01"),
        ("next January I run", "en", "2023-03-02", "2024-01"),
        ("next April I run", "en", "2023-03-02", "2023-04"),
        ("letzten August bin ich gelaufen", "de", "2024-06-02", "2023-08"),
        ("in December I ran", "en", "2024-01-02", "2023-12"),
        ("12月30日我搬到了北京", "en", "2024-01-02", "2023-12"),
    ],
)
def test_a_month_without_a_year_is_the_last_the_next_or_the_nearest(
    text: str, language: Language, said: str, named: str
) -> None:
    with reading(language):
        (span,) = spans_of(text, date.fromisoformat(said))
    assert date.fromordinal(span[0]).isoformat().startswith(named)


@pytest.mark.parametrize("text", ["This may sound silly", "Those 2 may come", "These 3 march on"])
def test_a_verb_names_no_month(text: str) -> None:
    assert spans_of(text, SAID) == ()


@pytest.mark.parametrize("text", ["$2000", "€ 2000", "2000 €", "$1,999"])
def test_an_amount_of_money_is_no_year(text: str) -> None:
    assert spans_of(text, SAID) == ()
    assert not is_date(text)


def test_times_are_the_same_told_precisely_or_roughly_but_not_told_apart() -> None:
    (day,), (week,) = spans_of("20 May 2023"), spans_of("the week before 25 May 2023")
    (other,), (year,) = spans_of("12 May 2023"), spans_of("2023")
    assert same_time(day, week)
    assert not same_time(other, week)
    assert not same_time(day, year)


@pytest.mark.parametrize("stamp", ["1:56 pm on 8 May, 2023: ", "[2023-05-08 13:56] ", "2023-05-08T13:56:00 - "])
def test_the_stamp_of_a_line_is_told_from_what_it_says(stamp: str) -> None:
    assert without_stamp(f"{stamp}Ann ran in 2022") == (date(2023, 5, 8), "Ann ran in 2022")
    assert without_stamp("Ann ran in 2022")[0] is None


def test_a_moment_is_a_day_and_not_a_month() -> None:
    assert moment("1:56 pm on 8 May, 2023") == date(2023, 5, 8)
    assert moment("May 2023") is None
    assert moment("31 February 2023") is None
