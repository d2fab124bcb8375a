"""How each language asks for a conclusion, for a number and for a name, and how it answers yes or no."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from attribution.text.languages.dictionary import dictionary_form
from attribution.text.languages.language_data import Language, compiled_of_language, words_of_language


@dataclass(frozen=True, slots=True)
class QuestionPatterns:
    """Patterns of one language.

    Attributes:
        polite: how a question begins that only asks politely: could you tell me.
        concludes: moods and adverbs of what is supposed; the conditional is found by `is_conditional`.
        reported: verbs after which a mood belongs to what somebody said: Where did Ana say she would live?
        inferential: words of an answer that is a yes or no, however sure.
        counts: how a number or duration is asked for; it begins the question.
        how_many: how a number of things is asked for.
        asks_a_name: what asks for a name.
    """

    polite: re.Pattern[str]
    concludes: re.Pattern[str]
    reported: re.Pattern[str]
    inferential: re.Pattern[str]
    counts: re.Pattern[str]
    how_many: re.Pattern[str]
    asks_a_name: re.Pattern[str]


@cache
def question_patterns(language: Language) -> QuestionPatterns:
    """The patterns of a language."""
    return QuestionPatterns(**compiled_of_language(language, "questions"))


def is_conditional(word: str, language: Language) -> bool:
    """Whether a lower-case word is a verb in the conditional: an infinitive with an ending, viviría or habiterait."""
    endings = words_of_language(language, "conditional_endings")
    stem = next((word[: -len(ending)] for ending in endings if word.endswith(ending)), "")
    if not stem.endswith("r"):
        return False
    verb = _unaccented(dictionary_form(word, language).lower())
    # A verb is its own infinitive; `quería` is the imperfect of querer, not the infinitive *quer.
    listed = any(
        stem == irregular or (len(irregular) > 4 and stem.endswith(irregular))
        for irregular in words_of_language(language, "conditional_stems")
    )
    return listed or (verb != _unaccented(word) and _unaccented(stem) in (verb, verb.removesuffix("e")))


def _unaccented(word: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))
