"""Times named in German, Spanish and French, put into the English that the date rules read.

A time is found by templates: `vor {n} {u}` finds `vor 20 Jahren`, and `{n} {u} ago` says in English what it found. The
rules that turn a phrase into days (which days `last week` means) are then the same for all languages. The first
template that matches counts. Names of months have their abbreviation behind a slash.

dateparser, which does this for more languages, was tried and left out: it gives points of time where spans are needed,
takes `am Morgen` for `tomorrow`, and needs up to 20 ms for a phrase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import chain

from attribution.text.calendar_names import MONTHS, WEEKDAYS
from attribution.text.languages.language_data import Language, filled, language_data

Names = Mapping[str, str]
"""English name → pattern of the name in another language."""

_ENGLISH = {
    "weekdays": WEEKDAYS,
    "seasons": ("spring", "summer", "autumn", "winter"),
    "units": ("day", "week", "month", "year", "weekend", "night"),
    "days": ("yesterday", "today"),
}


def in_english(text: str, language: Language) -> tuple[tuple[str, ...], str]:
    """The times that a text with its numbers in digits names, in English, and the text with them crossed out."""
    if language == "en":
        return (), text
    text = text.replace("’", "'")
    phrases: list[str] = []
    for pattern, english in _rules(language):
        for match in pattern.finditer(text):
            parts = {name: _in_english(name, part, language) for name, part in match.groupdict().items() if part}
            phrases.append(english.format_map(parts))
        text = pattern.sub(lambda match: "¦" * len(match[0]), text)
    return tuple(phrases), text


def english_name(word: str, language: Language) -> str | None:
    """The English name of a lower-case word that names a month, day, season or unit; None for others."""
    if language == "en":
        return None
    return next((english.lower() for english, name in _all_names(language) if name.fullmatch(word)), None)


@cache
def _all_names(language: Language) -> tuple[tuple[str, re.Pattern[str]], ...]:
    months = {english: name for english, (name, _) in _months(language).items()}
    names = (months, *(_named(language, key) for key in _ENGLISH))
    return tuple((english, re.compile(name)) for english, name in chain.from_iterable(group.items() for group in names))


@cache
def _named(language: Language, key: str) -> Names:
    own = language_data(language)["times"][key].split()
    return {name: pattern.replace("_", " ") for name, pattern in zip(_ENGLISH[key], own, strict=True)}


@cache
def _months(language: Language) -> Mapping[str, tuple[str, str]]:
    """English name → the pattern of the month in full, and abbreviated."""
    own = (name.partition("/") for name in language_data(language)["times"]["months"].split())
    return {english: (name, short) for english, (name, _, short) in zip(MONTHS, own, strict=True)}


@cache
def _names(language: Language) -> dict[str, Names]:
    times = language_data(language)["times"]
    return {
        "m": {english: f"{name}|{short}" for english, (name, short) in _months(language).items()},
        "w": _named(language, "weekdays"),
        "s": _named(language, "seasons"),
        "u": _named(language, "units"),
        "n": times["some"],
        "which": times["which"],
        "part": times["part"],
    }


@lru_cache
def _rules(language: Language) -> tuple[tuple[re.Pattern[str], str], ...]:
    names = _names(language)
    groups = {name: f"(?P<{name}>{'|'.join(patterns.values())})" for name, patterns in names.items()}
    groups["n"] = f"(?P<n>\\d{{1,3}}|{'|'.join(names['n'].values())})"
    groups |= {"d": r"(?P<d>\d{1,2})", "y": r"(?P<y>\d{4})"}
    groups["dow"] = f"(?:(?:{'|'.join(names['w'].values())}),? (?:de[nmr] |el |le )?)?"
    return tuple(
        (re.compile(rf"(?<!\w)(?:{filled(template, groups)})(?!\w)", re.I), english)
        for template, english in language_data(language)["times"]["templates"]
    )


def _in_english(name: str, part: str, language: Language) -> str:
    patterns = _names(language).get(name, {})
    return next((english for english, pattern in patterns.items() if re.fullmatch(pattern, part, re.I)), part)
