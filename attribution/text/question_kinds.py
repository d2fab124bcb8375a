"""What kind of answer a question asks for, and how each language asks: a conclusion, yes or no, a number, a name."""

from __future__ import annotations

import re

from attribution.constants import FEW_THINGS
from attribution.text.content import content_of, is_date
from attribution.text.languages.language_data import Language, compiled_of_language, dictionary_form, words_of_language
from attribution.text.languages.reading_language import cached_in_language, language
from attribution.text.names import is_name
from attribution.text.stems import is_number
from attribution.text.word_forms import without_accents
from tracing.systems.conversations import Question

_CJK = compiled_of_language("common", "cjk")
_WORD = re.compile(r"[^\W\d_]+")


def _patterns() -> dict[str, re.Pattern[str]]:
    return compiled_of_language(language(), "questions")


def is_conditional(word: str, language: Language) -> bool:
    """Whether a lower-case word is a verb in the conditional: an infinitive with an ending, viviría or habiterait."""
    endings = words_of_language(language, "conditional_endings")
    stem = next((word[: -len(ending)] for ending in endings if word.endswith(ending)), "")
    if not stem.endswith("r"):
        return False
    verb = without_accents(dictionary_form(word, language).lower())
    # A verb is its own infinitive; `quería` is the imperfect of querer, not the infinitive *quer.
    listed = any(
        stem == irregular or (len(irregular) > 4 and stem.endswith(irregular))
        for irregular in words_of_language(language, "conditional_stems")
    )
    return listed or (verb != without_accents(word) and without_accents(stem) in (verb, verb.removesuffix("e")))


def is_inferred(question: Question) -> bool:
    """Whether the answer is a conclusion, which no text need contain, so that any of its grounds is enough."""
    return is_yes_or_no(question) or _concludes(question.question)


def is_yes_or_no(question: Question) -> bool:
    """Whether the accepted answer is yes or no, however sure."""
    gold = question.answers[0].strip()
    return _patterns()["inferential"].search(gold) is not None or _CJK["yes_or_no"].match(gold) is not None


@cached_in_language(4096)
def _concludes(question: str) -> bool:
    """Whether a question asks what is to be supposed, rather than what somebody said of it."""
    patterns = _patterns()
    question = patterns["polite"].sub(" ", question.strip())
    places = [match.start() for match in patterns["concludes"].finditer(question)]
    places += [match.start() for match in _WORD.finditer(question) if is_conditional(match[0].lower(), language())]
    return bool(places) and patterns["reported"].search(question[: min(places)]) is None


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
    return _patterns()["asks_a_name"].search(question.question) is not None


def is_count(question: Question) -> bool:
    """Whether a number is asked for, which may have to be counted."""
    text = question.question.strip()
    return _patterns()["counts"].match(text) is not None or _CJK["asks_a_number"].match(text) is not None


def _how_many(question: str) -> bool:
    return (
        _patterns()["how_many"].match(question.strip()) is not None or _CJK["asks_a_number"].match(question) is not None
    )
