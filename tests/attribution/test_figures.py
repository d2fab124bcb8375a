"""Numbers with separators, units of thousands and currencies are one number, in every form in which people write it."""

from __future__ import annotations

import pytest

from attribution.gold_answers.answer_audit import Audit
from attribution.judging.normal_forms import same_value
from attribution.judging.words import judge
from attribution.text.content import content_of, is_date
from attribution.text.dates import spans_of
from attribution.text.languages.language_data import Language
from attribution.text.languages.reading_language import reading
from attribution.text.numbers import cjk_in_digits
from attribution.text.tokens import contains
from tracing.systems.conversations import Conversation, Question


@pytest.mark.parametrize(
    ("one", "text", "number"),
    [
        ("en", "$20,000", "20000"),
        ("en", "20 000 dollars", "20000"),
        ("en", "US$20k", "20000"),
        ("en", "20 thousand", "20000"),
        ("en", "1.500 €", "1500"),
        ("en", "€1.5m", "1500000"),
        ("en", "two and a half million", "2500000"),
        ("en", "half a million dollars", "500000"),
        ("de", "1.500 €", "1500"),
        ("de", "20’000 Franken", "20000"),
        ("de", "1,5 Mio. Euro", "1500000"),
        ("de", "20 Tsd.", "20000"),
        ("de", "1.500,00 EUR", "1500"),
        ("es", "20 mil euros", "20000"),
        ("es", "1,5 millones de dólares", "1500000"),
        ("es", "1,500 pesos", "1500"),
        ("fr", "1 500 €", "1500"),
        ("fr", "20 k€", "20000"),
        ("fr", "1,5 million d’euros", "1500000"),
        ("fr", "2 milliards", "2000000000"),
    ],
)
def test_a_number_is_one_however_it_is_written(one: Language, text: str, number: str) -> None:
    with reading(one):
        assert content_of(text) == {number}


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("$20,000", "20k"),
        ("$20,000", "20,000"),
        ("1,500 dollars", "$1500"),
        ("USD 1500", "$1,500.00"),
        ("£20", "20 pounds"),
        ("20000 €", "20.000,- EUR"),
        ("1.5 million", "1,5 Mio."),
        ("20,000元", "2万元"),
        ("500 rupees", "Rs. 500"),
    ],
)
def test_an_amount_is_right_in_any_form(answer: str, reply: str) -> None:
    judged = judge(reply, [answer])
    assert (judged.em, judged.f1, judged.contains, same_value(answer, reply)) == (1.0, 1.0, 1.0, True)


@pytest.mark.parametrize(
    ("answer", "reply"),
    [("$1500", "€1500"), ("1500 dollars", "1,500 euros"), ("20 pounds", "20 kilos"), ("$20,000", "$20"), ("2.5", "25")],
)
def test_another_amount_or_currency_is_wrong(answer: str, reply: str) -> None:
    assert judge(reply, [answer]).contains == 0.0
    assert not same_value(answer, reply)


def test_what_only_looks_like_an_amount_stays_as_it_is() -> None:
    assert content_of("a wall of 2m") == content_of("a wall 2m") != content_of("2 million walls")
    assert judge("401(k)", ["401k"]).em == 1.0
    assert judge("rooms 3,5", ["rooms 3 and 5"]).f1 > 0.8
    assert judge("in 1500 dollars", ["dollars"]).contains == 1.0


@pytest.mark.parametrize("text", ["$20,000", "2k", "2,004 people", "1 999 euros", "2004 dollars", "2.004 €"])
def test_an_amount_is_no_year(text: str) -> None:
    assert not is_date(text)
    assert spans_of(text) == ()


def test_a_day_is_not_grouped_with_the_number_after_it() -> None:
    assert "200" in content_of("On May 5 200 people came")


@pytest.mark.parametrize("gold", ["$20,000", "20k dollars", "20 000", "$20,000 and a car"])
@pytest.mark.parametrize("told", ["I paid $20,000 for it and got a car.", "It was 20,000 dollars with the car."])
def test_nobody_is_accused_of_an_amount_that_is_said_in_another_form(gold: str, told: str) -> None:
    said = [("Mara", "I bought a boat, you know!"), ("Mara", told), ("Jan", "That is a lot of money for a boat.")]
    turns = [{"id": f"D1:{at}", "speaker": name, "text": text} for at, (name, text) in enumerate(said)]
    session = {"id": "D1", "time": "9 May 2023", "turns": turns}
    talk = Conversation.model_validate({"id": "c", "speakers": ["Mara", "Jan"], "sessions": [session]})
    asked = Question(id="q", question="What did Mara pay for the boat?", answers=(gold,), evidence=("D1:1",))
    assert Audit(talk).suspicion(asked, "a thousand euros") is None


@pytest.mark.parametrize(
    ("one", "answer", "reply", "same"),
    [
        ("en", "10 km", "10km", True),
        ("en", "10km", "ten kilometres", True),
        ("en", "10 km", "10 miles", False),
        ("en", "5 kg", "5 kilograms", True),
        ("en", "5 lbs", "5 kg", False),
        ("en", "60 mph", "60 miles per hour", True),
        ("en", "20°C", "20 degrees Celsius", True),
        ("de", "10 km", "zehn Kilometer", True),
        ("en", "20 per cent", "20%", True),
        ("de", "20 %", "20 Prozent", True),
        ("es", "20%", "20 por ciento", True),
        ("fr", "20 %", "vingt pour cent", True),
        ("en", "20%", "30 percent", False),
        ("en", "1½ cups", "1.5 cups", True),
        ("en", "2 1/2 cups", "two and a half cups", True),
        ("en", "三千元", "3000元", True),
        ("en", "20000人", "两万人", True),
        ("en", "1億5千万円", "150,000,000円", True),
        ("en", "三千元", "四千元", False),
        ("de", "1,5 Millionen", "anderthalb Millionen", True),
        ("de", "2,5 Millionen", "zweieinhalb Millionen", True),
        ("es", "3,5 millones", "3 millones y medio", True),
        ("fr", "1,5 million", "un million et demi", True),
        ("en", "1.5 million", "a million and a half", True),
        ("en", "$500-600", "500 to 600 dollars", True),
        ("en", "$500-$600", "between 500 and 600 dollars", True),
        ("en", "$500-600", "$500", False),
        ("en", "-5", "5", False),
        ("en", "5", "-5", False),
        ("en", "-5", "minus five", True),
        ("en", "−5°C", "-5 °C", True),
        ("en", "3-5", "3-5", True),
    ],
)
def test_units_shares_ranges_and_signs_are_read_with_their_number(
    one: Language, answer: str, reply: str, same: bool
) -> None:
    with reading(one):
        assert contains(reply, answer) is same
        assert same_value(answer, reply) is not (not same)


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("二十三岁", "23岁"),
        ("一万二千", "12000"),
        ("5万3000", "53000"),
        *((text, text) for text in ("十几个", "百万", "千万别", "一百二")),
    ],
)
def test_chinese_numbers_are_in_digits_where_that_is_sure(text: str, digits: str) -> None:
    assert cjk_in_digits(text) == digits
