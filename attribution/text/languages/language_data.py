"""What differs from language to language, read from a file for each (`en.toml` …) when it is first needed.

A file has lists of words, and tables of patterns. What each is for is said in `en.toml`, or where it is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Literal

import simplemma

from tracing.package_data import packaged_tables

Language = Literal["en", "de", "es", "fr"]
LANGUAGES: tuple[Language, ...] = ("en", "de", "es", "fr")
Tongue = Language | Literal["ru", "tr", "fi", "hu", "ar", "he", "ko", "th", "km", "lo", "zh", "ja"]
"""A language that is read, or one of which the words are."""

Source = Language | Literal["common", "near_languages", "tongues"]
"""A language, what is common to all, what is known of those read by words, or of those that are not read."""

_NAME = re.compile(r"\{([a-z_]+)\}")


def language_data(language: Source) -> Mapping[str, Any]:
    """The whole file of a source."""
    return packaged_tables("attribution", f"text/languages/{language}.toml")


@cache
def words_of_language(language: Source, key: str) -> tuple[str, ...]:
    """A list of words; empty where a language has none."""
    return tuple(str(language_data(language).get(key, "")).split())


def patterns_of_language(language: Source, table: str) -> dict[str, str]:
    """The patterns of a table by their keys: without line breaks, and with the patterns that they name filled in."""
    data = language_data(language)
    parts = {name: joined(text) for name, text in data["parts"].items()}
    return {key: filled(joined(text), parts) for key, text in data[table].items() if isinstance(text, str)}


@cache
def compiled_of_language(language: Source, table: str) -> dict[str, re.Pattern[str]]:
    """The patterns of a table, compiled; they match whatever the case."""
    return {key: re.compile(text, re.I) for key, text in patterns_of_language(language, table).items()}


def joined(text: str) -> str:
    """A pattern that was written over several lines."""
    return "".join(text.splitlines())


def filled(pattern: str, parts: Mapping[str, str]) -> str:
    """A pattern with others in place of their names in braces."""
    return _NAME.sub(lambda name: parts[name[1]], pattern)


def tongue_data(tongue: Tongue) -> Mapping[str, Any]:
    """What is known of a language of which the words are read; nothing of those that have a file of their own."""
    data: Mapping[str, Any] = language_data("tongues").get(tongue, {})
    return data


@cache
def tongues_with(key: str) -> tuple[Tongue, ...]:
    """The languages read by words of which something is known."""
    return tuple(tongue for tongue, data in language_data("tongues").items() if key in data)  # type: ignore[misc]


@cache
def function_words(language: Tongue) -> frozenset[str]:
    """The words of a language that carry no content, casefolded; by them the language is known."""
    own = str(tongue_data(language).get("function_words", "")).split()
    words = words_of_language(language, "function_words") if language in LANGUAGES else own
    return frozenset(word.casefold() for word in words)


@cache
def all_function_words() -> frozenset[str]:
    """Those of all languages that are read."""
    return frozenset().union(*map(function_words, LANGUAGES))


@cache
def near_function_words() -> tuple[frozenset[str], ...]:
    """The same of languages that are not read, but share many words with one that is."""
    return tuple(frozenset(words.split()) for words in language_data("near_languages").values())


@lru_cache(maxsize=32768)
def is_known(word: str, language: Tongue) -> bool:
    """Whether a word is in a language's dictionary, as it is spelt."""
    return simplemma.is_known(word, lang=language)


@lru_cache(maxsize=32768)
def dictionary_form(word: str, language: Language | str) -> str:
    """The form under which a dictionary lists a word."""
    return simplemma.lemmatize(word, lang=language)
