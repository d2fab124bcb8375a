"""Chinese and Japanese text, prepared to be cut into pairs of characters: numerals in digits, no words of grammar."""

from __future__ import annotations

import re

_DIGITS = {
    **dict(zip("〇零一二三四五六七八九", (0, *range(10)), strict=True)),
    "两": 2,
    "兩": 2,
}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_COUNTERS = "个個只隻匹条條本张張枚位名人口岁歳才次回遍天件杯瓶台辆輛块塊元家间間层層套双雙把头頭棵朵部場场冊册种種分"
_NUMERAL = "".join((*_DIGITS, *_UNITS))
_COUNTED = re.compile(
    rf"(?P<digits>\d+)\s*[{_COUNTERS}]|(?P<numeral>[{_NUMERAL}]+)(?P<counter>[{_COUNTERS}年月日号時时点])"
)
_DATED = "年月日号時时点"
# The longest first: a pattern takes the first that fits.
_GRAMMAR = re.compile(
    "因为|因為|由于|所以|因此|没有|沒有|什么时候|何时|何時|为什么|為什麼|什么|什麼|哪里|哪儿|哪裡|哪个|哪些|怎么|怎樣|怎样|多少|如何|是否"
    "|[的了吗嗎呢吧啊是在着我你您他她它们們谁誰几幾很也都就不没沒]"
    "|から|ので|ない|どうして|なぜ|いつ|どこ|だれ|どの|どんな|なに|何"
    "|ませんでした|ていました|ています|でしょう|ました|ません|でした|ている|ていた|ます|です|した|する|った|って"
    "|[はがをにでとのもへか]"
)


def without_function_words(text: str) -> str:
    """A text with what is counted written after its number in digits, and spaces in place of the words of grammar."""
    return _GRAMMAR.sub(" ", _COUNTED.sub(_in_digits, text))


def _in_digits(found: re.Match[str]) -> str:
    if found["digits"]:
        return f"{found['digits']} "
    number = number_of(found["numeral"])
    counter = found["counter"] if found["counter"] in _DATED else " "
    return f"{number}{counter}"


def number_of(numeral: str) -> int:
    """The number that a Chinese or Japanese numeral below ten thousand means: 二十三 is 23, 二〇二三 is 2023."""
    if not any(sign in _UNITS for sign in numeral):
        return int("".join(str(_DIGITS[sign]) for sign in numeral))
    total, digit = 0, 0
    for sign in numeral:
        if sign in _UNITS:
            total += (digit or 1) * _UNITS[sign]
            digit = 0
        else:
            digit = _DIGITS[sign]
    return total + digit
