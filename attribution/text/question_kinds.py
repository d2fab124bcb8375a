"""What kind of answer a question asks for: a conclusion, a yes or no, a number of things, a name."""

from __future__ import annotations

import re
from functools import lru_cache

from attribution.constants import FEW_THINGS
from attribution.text.content import content_of, is_date
from attribution.text.languages.language_data import Language
from attribution.text.languages.question_patterns import is_conditional, question_patterns
from attribution.text.languages.reading import language
from attribution.text.names import is_name
from attribution.text.stems import is_number
from tracing.systems.conversations import Question

_CJK_NUMBER = re.compile(".*(?:多少|几|幾|いくつ|何[人匹個つ回冊本年日歳枚])")
_CJK_YES_OR_NO = re.compile("是|不是|对|はい|いいえ")
_WORD = re.compile(r"[^\W\d_]+")


def is_inferred(question: Question) -> bool:
    """Whether the answer is a conclusion, which no text need contain, so that any of its grounds is enough."""
    return is_yes_or_no(question) or _concludes(question.question, language())


def is_yes_or_no(question: Question) -> bool:
    """Whether the accepted answer is yes or no, however sure."""
    gold = question.answers[0].strip()
    return question_patterns(language()).inferential.search(gold) is not None or _CJK_YES_OR_NO.match(gold) is not None


@lru_cache(maxsize=4096)
def _concludes(question: str, language: Language) -> bool:
    """Whether a question asks what is to be supposed, rather than what somebody said of it."""
    patterns = question_patterns(language)
    question = patterns.polite.sub(" ", question.strip())
    places = [match.start() for match in patterns.concludes.finditer(question)]
    places += [match.start() for match in _WORD.finditer(question) if is_conditional(match[0].lower(), language)]
    return bool(places) and patterns.reported.search(question[: min(places)]) is None


def expected_count(question: Question) -> int:
    """The number of things asked for, if small enough for them to be named instead; else 0."""
    words = content_of(question.answers[0])
    number = next((int(word) for word in words if len(words) == 1 and word.isdigit()), 0)
    return number if _how_many(question.question) and 2 <= number <= FEW_THINGS else 0


def is_literal(question: Question) -> bool:
    """Whether the answer is a number, or a name that was asked for: those cannot be inferred."""
    words = [word for word in question.answers[0].split() if content_of(word)]
    numbers = {word for word in words if all(map(is_number, content_of(word)))}
    named = asks_a_name(question)
    return not is_date(question.answers[0]) and all(word in numbers or (named and is_name(word)) for word in words)


def asks_a_name(question: Question) -> bool:
    """Whether the name of a person or a place is asked for."""
    return question_patterns(language()).asks_a_name.search(question.question) is not None


def is_count(question: Question) -> bool:
    """Whether a number is asked for, which may have to be counted."""
    text = question.question.strip()
    return question_patterns(language()).counts.match(text) is not None or _CJK_NUMBER.match(text) is not None


def _how_many(question: str) -> bool:
    return (
        question_patterns(language()).how_many.match(question.strip()) is not None
        or _CJK_NUMBER.match(question) is not None
    )
