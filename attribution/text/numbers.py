"""Numbers written in words: English up to ninety-nine, Chinese and Japanese below ten thousand."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ZERO_TO_NINETEEN = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_TWENTY_TO_NINETY = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = tuple(_ZERO_TO_NINETEEN.split())
_TENS = tuple(_TWENTY_TO_NINETY.split())
_VALUES = {word: value for value, word in enumerate(_SMALL)} | {
    word: 20 + 10 * place for place, word in enumerate(_TENS)
}
_VAGUE = {"couple": 2, "few": 3, "several": 4}
_FILLERS = frozenset(("a", "an", "of"))
_CJK_DIGITS = {
    **dict(zip("〇零一二三四五六七八九", (0, *range(10)), strict=True)),
    "两": 2,
    "兩": 2,
}
_CJK_UNITS = {"十": 10, "百": 100, "千": 1000}

ONE_TO_TWELVE = _SMALL[1:13]

IN_WORDS = rf"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_SMALL[1:10])}))?|{'|'.join(_SMALL[1:])})"
"""Pattern of a number in English words, from one to ninety-nine."""

QUANTITY = rf"(?:\d{{1,3}}|an?|{IN_WORDS}|(?:a )?couple(?: of)?|(?:a )?few|several)"
"""Pattern of how many: in digits, in English words, or vaguely."""

CJK_NUMERAL = f"[{''.join((*_CJK_DIGITS, *_CJK_UNITS))}]+"
"""Pattern of a Chinese or Japanese numeral."""


def in_digits(words: Sequence[str]) -> list[str]:
    """Lower-case words with the number words among them as digits; `twenty` and `two` in a row become `22`."""
    out: list[str] = []
    after_tens = False
    for word in words:
        value = _VALUES.get(word)
        if value is None:
            out.append(word)
        elif after_tens and 1 <= value <= 9:
            out[-1] = str(int(out[-1]) + value)
        else:
            out.append(str(value))
        after_tens = value is not None and value >= 20
    return out


def quantity_of(text: str | None) -> int:
    """The number that a text of `QUANTITY` means: a couple is 2, a few are 3, several are 4; 1 if there is none."""
    words = [word for word in re.split(r"[-\s]+", (text or "").lower()) if word and word not in _FILLERS]
    said = in_digits(words)[0] if words else "1"
    return int(said) if said.isdecimal() else _VAGUE.get(said, 1)


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
