"""Chinese and Japanese text, prepared to be cut into pairs of characters: numerals in digits, no function words."""

from __future__ import annotations

import re

from attribution.text.numbers import CJK_NUMERAL, cjk_in_digits, cjk_number

_COUNTERS = "个個只隻匹条條本张張枚位名人口岁歳才次回遍天件杯瓶台辆輛块塊元家间間层層套双雙把头頭棵朵部場场冊册种種分"
_COUNTED = re.compile(
    rf"(?P<digits>\d+)\s*[{_COUNTERS}]|(?P<numeral>{CJK_NUMERAL})(?P<counter>[{_COUNTERS}年月日号時时点])"
)
_DATED = "年月日号時时点"
# Words with a sign that is a function word by itself.
_COMPOUNDS = (
    "成都|首都|京都|都市|都会|都柏林|都江堰|都灵|现在|現在|存在|实在|实际|还是|可是|总是|于是|了解|为了|除了|着急|着陆|着装|沉着|目的|的士|的确"
    "|你好|吉他|其他|其它|也门|也许|成就|就业|就职|不同|不过|不错|差不多|没收|沉没|几何|几乎|几内亚|酒吧|网吧|咖啡吧|吧台|自我|呢绒"
)
# The longest first: a pattern takes the first match.
_GRAMMAR = re.compile(
    f"(?P<word>{_COMPOUNDS})"
    "|因为|因為|由于|所以|因此|没有|沒有|什么时候|何时|何時|为什么|為什麼|什么|什麼|哪里|哪儿|哪裡|哪个|哪些|怎么|怎樣|怎样|多少|如何|是否"
    "|[的了吗嗎呢吧啊是在着我你您他她它们們谁誰几幾很也都就不没沒]"
    "|から|ので|ない|どうして|なぜ|いつ|どこ|だれ|どの|どんな|なに|何"
    "|ませんでした|ていました|ています|でしょう|ました|ません|でした|ている|ていた|ます|です|した|する|った|って"
    "|[はがをにでとのもへか]"
)


def without_function_words(text: str) -> str:
    """A text with numbers in digits before what they count, and spaces in place of function words."""
    return _GRAMMAR.sub(lambda match: match["word"] or " ", _COUNTED.sub(_in_digits, cjk_in_digits(text)))


def _in_digits(match: re.Match[str]) -> str:
    if match["digits"]:
        return f"{match['digits']} "
    number = cjk_number(match["numeral"])
    counter = match["counter"] if match["counter"] in _DATED else " "
    return f"{number}{counter}"
