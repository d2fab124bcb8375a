"""What kind of answer a question asks for: a conclusion, a yes or no, a number of things, a name."""

from __future__ import annotations

import re

from attribution.text.content import content_of, is_date
from attribution.text.stems import is_number
from tracing.systems.conversations import Question

_FEW = 6
_CJK_NUMBER = ".*(?:多少|几|幾|いくつ|何[人匹個つ回冊本年日歳枚])"
_INFERENTIAL = content_of("yes, likely, unlikely, probably, maybe, possibly, perhaps")
_YES_OR_NO = re.compile(r"(?:yes|no|not? (?:likely|really|necessarily))\b|是|不是|对|はい|いいえ", re.I)
_CONCLUDES = re.compile(r"\b(?:would|might|could|likely|probably|potentially|possibly|suspected|considered)\b", re.I)
_COUNTS = re.compile(rf"(?:how (?:many|often|long)|after how many|what (?:number|amount))\b|{_CJK_NUMBER}", re.I)
_HOW_MANY = re.compile(rf"how many\b|{_CJK_NUMBER}", re.I)
_ASKS_A_NAME = re.compile(
    r"\b(?:who|whom|whose|where|name[ds]?|called|which (?:city|country|town|state|place))\b", re.I
)


def is_inferred(question: Question) -> bool:
    """Whether the answer is a conclusion, which no text need contain, so that any of its grounds is enough."""
    return is_yes_or_no(question) or _CONCLUDES.search(question.question) is not None


def is_yes_or_no(question: Question) -> bool:
    """Whether the accepted answer is yes or no, however sure."""
    gold = question.answers[0].strip()
    return bool(content_of(gold) & _INFERENTIAL) or _YES_OR_NO.match(gold) is not None


def expected_count(question: Question) -> int:
    """The number of things asked for, if small enough for them to be named instead; else 0."""
    words = content_of(question.answers[0])
    number = next((int(word) for word in words if len(words) == 1 and word.isdigit()), 0)
    return number if _HOW_MANY.match(question.question) and 2 <= number <= _FEW else 0


def is_literal(question: Question) -> bool:
    """Whether the answer is a number, or a name that was asked for: those cannot be inferred."""
    words = [word for word in question.answers[0].split() if content_of(word)]
    named = _ASKS_A_NAME.search(question.question) is not None
    return not is_date(question.answers[0]) and all(is_number(word) or (named and word[:1].isupper()) for word in words)


def is_count(question: Question) -> bool:
    """Whether a number is asked for, which may have to be counted."""
    return _COUNTS.match(question.question) is not None
