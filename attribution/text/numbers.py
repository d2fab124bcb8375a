"""Numbers written in words: in digits for the languages that are read, Chinese and Japanese below ten thousand."""

from __future__ import annotations

import re
from functools import lru_cache

from text_to_num import alpha2digit

from attribution.text.digits import german_halves, has_digits, plain_figures, whole_halves
from attribution.text.languages.language_data import Language, compiled_of_language, language_data, patterns_of_language

_ONE_TO_NINETEEN = """
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_SMALL = tuple(_ONE_TO_NINETEEN.split())
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"

_VAGUE = {"couple": 2, "few": 3, "several": 4}
_FILLERS = frozenset(("a", "an", "of"))
_YEAR_IN_PAIRS = re.compile(r"\b(1[89]|20) ([1-9]\d)\b")
_CJK_DIGITS = {
    **dict(zip("〇零一二三四五六七八九", (0, *range(10)), strict=True)),
    "两": 2,
    "兩": 2,
}
_CJK_UNITS = {"十": 10, "百": 100, "千": 1000}
_CJK_MYRIADS = {"万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8}
_CJK_SIGNS = f"{''.join(_CJK_DIGITS)}{''.join(_CJK_UNITS)}{''.join(_CJK_MYRIADS)}"
# A number begins with a digit or ten and has a unit; 十几 is no number, and 百二 means 102 or 120.
_CJK_NUMBER = re.compile(
    rf"(?<![\d.,{_CJK_SIGNS}])(?=\d*[{_CJK_SIGNS}])(?=[{''.join(_CJK_DIGITS)}]?[百千万萬億亿十\d])[\d十{''.join(_CJK_DIGITS)}]"
    rf"[\d{_CJK_SIGNS}]+(?<![百千万萬億亿][一二三四五六七八九])(?![\d几幾数多余餘{_CJK_SIGNS}])"
)
_CJK_YEAR = re.compile("[一二][〇零一二三四五六七八九]{3}(?=年)")

_IN_WORDS = rf"(?:{_TENS})(?:[- ](?:{'|'.join(_SMALL[:9])}))?|{'|'.join(reversed(_SMALL))}"
QUANTITY = rf"(?:\d{{1,3}}|an?|{_IN_WORDS}|(?:a )?couple(?: of)?|(?:a )?few|several)"
"""Pattern of how many: in digits, in English words up to ninety-nine, or vaguely."""

CJK_NUMERAL = f"[{''.join((*_CJK_DIGITS, *_CJK_UNITS))}]+"
"""Pattern of a Chinese or Japanese numeral."""


@lru_cache(maxsize=16384)
def in_digits(text: str, language: Language) -> str:
    """A text with its numbers as English writes them in digits: 27, 1250, 3.5, 1994, and 12 for a dozen."""
    text = cjk_in_digits(text)
    text = plain_figures(german_halves(text) if language == "de" else text, language)
    # Half a surrogate pair is text in Python, but not for this library.
    digits: str = alpha2digit(text.encode("utf-8", "replace").decode(), language)
    if digits != text:
        # 1994 is said in two numbers: nineteen ninety-four.
        digits = _YEAR_IN_PAIRS.sub(lambda pair: pair[0] if pair[0] in text else pair[1] + pair[2], digits)
    smallest = language_data(language)["numbers"]["smallest"]
    digits = _smallest(language).sub(lambda word: smallest[word[0].lower()], digits)
    return _dozens(language).sub(_number_of_dozens, whole_halves(digits))


def without_ordinals(text: str, language: Language) -> str:
    """A text in digits with its ordinal numbers as cardinal ones: the 21st, der 21., la 3ª, le 20e."""
    return _ordinal(language).sub(r"\1", text) if has_digits(text) else text


def cjk_in_digits(text: str) -> str:
    """A text with Chinese and Japanese numbers that have a unit in digits: 三千, 两万, 二十三, 1億5千万, 二〇二四年."""
    if text.isascii():
        return text
    text = _CJK_YEAR.sub(lambda match: str(cjk_number(match[0])), text)
    return _CJK_NUMBER.sub(lambda match: str(_cjk_large(match[0])), text)


def _cjk_large(numeral: str) -> int:
    total, section, digits = 0, 0, ""
    for sign in numeral:
        if sign in _CJK_MYRIADS:
            total += (section + int(digits or 0) or 1) * _CJK_MYRIADS[sign]
            section, digits = 0, ""
        elif sign in _CJK_UNITS:
            section += int(digits or 1) * _CJK_UNITS[sign]
            digits = ""
        else:
            digits += str(_CJK_DIGITS.get(sign, sign))
    return total + section + int(digits or 0)


def quantity_of(text: str | None) -> int:
    """The number that a text of `QUANTITY` means: a couple is 2, a few are 3, several are 4; 1 if there is none."""
    quantity = next((word for word in in_digits((text or "").lower(), "en").split() if word not in _FILLERS), "1")
    return int(quantity) if quantity.isdecimal() else _VAGUE.get(quantity, 1)


def cjk_number(numeral: str) -> int:
    """The number that a Chinese or Japanese numeral below ten thousand means: 二十三 is 23, 二〇二三 is 2023."""
    if not any(sign in _CJK_UNITS for sign in numeral):
        return int("".join(str(_CJK_DIGITS[sign]) for sign in numeral))
    total, digit = 0, 0
    for sign in numeral:
        if sign in _CJK_UNITS:
            total += (digit or 1) * _CJK_UNITS[sign]
            digit = 0
        else:
            digit = _CJK_DIGITS[sign]
    return total + digit


def _number_of_dozens(match: re.Match[str]) -> str:
    number = 6 if match["half"] else 12 * int(match["n"] or 1)
    # French joins the next word to it: une demi-douzaine d'œufs.
    return f"{number} " if match[0].endswith(("'", "’")) else str(number)


@lru_cache
def _smallest(language: Language) -> re.Pattern[str]:
    """The numbers that `alpha2digit` leaves alone when they stand by themselves; some are articles or pronouns too."""
    return re.compile(rf"\b(?:{'|'.join(language_data(language)['numbers']['smallest'])})\b", re.I)


@lru_cache
def _ordinal(language: Language) -> re.Pattern[str]:
    return compiled_of_language(language, "numbers")["ordinal"]


@lru_cache
def _dozens(language: Language) -> re.Pattern[str]:
    words = patterns_of_language(language, "numbers")
    return re.compile(rf"\b(?:(?P<half>{words['half']}) ?|(?:(?P<n>\d{{1,3}})|{words['a']}) ){words['dozen']}", re.I)
