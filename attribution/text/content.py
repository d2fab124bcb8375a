"""What a text says, as far as matching needs it: its content words, and how much of one text another holds."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from itertools import chain, islice
from typing import Any

from attribution.constants import ENOUGH_WORDS, WITHOUT_A_NUMBER
from attribution.text.calendar_names import MONTHS, WEEKDAYS
from attribution.text.date_rules import spelt_out
from attribution.text.dates import without_stamp
from attribution.text.digits import without_figures
from attribution.text.languages.language_data import LANGUAGES, Tongue, compiled_of_language
from attribution.text.languages.reading_language import (
    cached_in_language,
    is_read,
    language,
    language_of,
    reading,
    small_words,
    tongue,
)
from attribution.text.numbers import cjk_in_digits, cjk_number
from attribution.text.segments import CJK_CHARACTER
from attribution.text.stems import is_number, stem
from attribution.text.tokens import cased_words
from attribution.text.word_forms import plain_letters

_EARLIER = re.compile(r"\b(?:previous|prior|preceding|past)\b", re.IGNORECASE)
_DAY_BEFORE = re.compile(r"\b(?:the )?(?:last day|day before)\b", re.IGNORECASE)
_DATE_WORDS = """
    yesterday today tonight tomorrow ago
    week weekend month year
"""
_RELATIVE_WORDS = "last next since recent few day morning night"

_CJK = compiled_of_language("common", "cjk")
_DATED = "年月日号時时点週周"


def text_of(value: Any) -> str:
    """The words of a variable's value: itself, or the strings in it, one per line."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(filter(None, map(text_of, value.values())))
    if isinstance(value, Sequence):
        return "\n".join(filter(None, map(text_of, value)))
    return "" if value is None or isinstance(value, bool) else str(value)


@cached_in_language(16384)
def words_of(text: str) -> tuple[str, ...]:
    """Content words of `text` in order: lemmas, numbers in digits, dates as day month year, CJK in pairs.

    Lines are read each for itself, and so are time stamps: contexts repeat them.
    """
    if "\n" in text:
        return tuple(chain.from_iterable(map(words_of, text.splitlines())))
    line = without_stamp(text)[1]
    if line and line != text:
        return words_of(text.removesuffix(line)) + words_of(line)
    text = spelt_out(text, language())
    if language() == "en":
        text = _DAY_BEFORE.sub("yesterday", _EARLIER.sub("last", text))
    text = without_function_words(text) if CJK_CHARACTER.search(text) else text
    content: list[str] = []
    small = small_words(tongue())
    run = ""
    for word in (*cased_words(text), ""):
        if not word.isascii() and CJK_CHARACTER.fullmatch(word):
            run += plain_letters(word, tongue())
            continue
        content += [run[at : at + 2] for at in range(max(1, len(run) - 1))] if run else []
        run = ""
        # May is a month.
        if word == "May" or (word and word.casefold() not in small):
            content.append("may" if word == "May" else stem(word))
    return tuple(content)


@cached_in_language(16384)
def content_of(text: str) -> frozenset[str]:
    """The content words of `text` as a set."""
    return frozenset(words_of(text))


def time_words(text: str) -> frozenset[str]:
    """The words of `text` that place it in time: yesterday, last Friday, three weeks ago, May, 2022."""
    return frozenset(word for word in content_of(text) if word in _CUE_STEMS or is_number(word))


def is_date(text: str) -> bool:
    """Whether an answer is a point or span of time, so that it may be stated relative to when it was said."""
    words = content_of(without_figures(text, language()))
    years = any(len(word) == 4 and word[:2] in ("19", "20") for word in words if word.isdigit())
    return years or bool(words & _DATE_STEMS)


class Vocabulary:
    """How informative each content word is in one conversation: rare words more, common ones less."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._describe(tuple(texts))
        self._places: dict[str, list[int]] = defaultdict(list)
        """The places of the texts that have a word; those that come after a past, too."""
        with reading(self.language):
            for place, text in enumerate(self._texts):
                for word in content_of(text):
                    self._places[word].append(place)

    def _describe(self, texts: tuple[str, ...]) -> None:
        self._texts, self._weights = texts, dict[str, float]()
        self.language: Tongue = language_of(texts)
        """The language of the texts."""
        self._is_read = is_read(texts)
        words = chain.from_iterable(map(str.split, texts))
        self._few = texts if len([*islice(words, ENOUGH_WORDS)]) < ENOUGH_WORDS else ()

    def past(self, texts: Iterable[str]) -> Vocabulary:
        """The vocabulary of the first of these texts; it shares their index."""
        past = copy(self)
        past._describe(tuple(texts))
        alike = past.language == self.language and past._texts == self._texts[: len(past._texts)]
        return past if alike else Vocabulary(past._texts)

    def weight(self, word: str) -> float:
        """Smoothed inverse frequency over the conversation's turns, greater than 0."""
        weight = self._weights.get(word)
        if weight is None:
            size = len(self._texts)
            frequency = bisect_left(self._places.get(word, ()), size)
            weight = self._weights[word] = math.log(1 + (size + 1) / (frequency + 0.5))
        return weight

    def content_of(self, text: str) -> frozenset[str]:
        """The content words of a text in the language of these."""
        with reading(self.language):
            return content_of(text)

    def reads(self, question: str, answers: Sequence[str]) -> bool:
        """Whether these texts and a question are in a language for which reading was measured.

        Others are read as well as may be. Of few texts question and first answer tell as well. Dates are not read in
        languages of which only words are, Chinese and Japanese apart.
        """
        if self.language not in (*LANGUAGES, "zh", "ja") and any(map(is_date, answers[:1])):
            return False
        if self._few:
            return is_read([question, *answers[:1], *self._few])
        return self._is_read and is_read([question])

    def coverage(self, needed: frozenset[str], words: frozenset[str]) -> float:
        """The share of `needed`, by weight, that is in `words`, from 0 to 1; 0 if nothing is needed.

        If any needed number is missing, the share is below half, however many words agree; 1 is
        excepted, since "one" is rarely a number.
        """
        if not needed:
            return 0.0
        common = needed & words
        if not common:
            return 0.0
        if len(common) == len(needed):
            return 1.0
        # Exact: the order of a set is another in each process.
        share = math.fsum(map(self.weight, common)) / math.fsum(map(self.weight, needed))
        lacks_number = any(
            (is_number(word) and word != "1") or (self.language not in LANGUAGES and word in MONTH_WORDS)
            for word in needed - common
        )
        return min(share, WITHOUT_A_NUMBER) if lacks_number else share


_DATE_STEMS = frozenset(stem(word.lower()) for word in (*MONTHS, *WEEKDAYS, *_DATE_WORDS.split()))
MONTH_WORDS = frozenset(map(str.lower, MONTHS))
"""The months as content words, in every language."""

WEEKDAY_WORDS = frozenset(map(str.lower, WEEKDAYS))
"""The days of the week as content words, in every language."""

_CUE_STEMS = _DATE_STEMS | frozenset(map(stem, _RELATIVE_WORDS.split()))


def without_function_words(text: str) -> str:
    """A text with numbers in digits before what they count, and spaces in place of function words."""
    return _CJK["grammar"].sub(lambda match: match["word"] or " ", _CJK["counted"].sub(_in_digits, cjk_in_digits(text)))


def _in_digits(match: re.Match[str]) -> str:
    if match["digits"]:
        return f"{match['digits']} "
    number = cjk_number(match["numeral"])
    counter = match["counter"] if match["counter"] in _DATED else " "
    return f"{number}{counter}"
