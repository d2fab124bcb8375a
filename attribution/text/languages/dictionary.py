"""A dictionary for each language: simplemma's (https://github.com/adbar/simplemma), loaded with its first word."""

from __future__ import annotations

from functools import lru_cache

import simplemma

from attribution.text.languages.language_data import Language


@lru_cache(maxsize=32768)
def is_known(word: str, language: Language) -> bool:
    """Whether a word is in a language's dictionary, as it is spelt."""
    return simplemma.is_known(word, lang=language)


@lru_cache(maxsize=32768)
def dictionary_form(word: str, language: Language | str) -> str:
    """The form under which a dictionary lists a word."""
    return simplemma.lemmatize(word, lang=language)
