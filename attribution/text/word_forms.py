"""The forms of a word in languages that are read by their words alone: cases, clitics, particles, numbers in words.

A word that the dictionary has counts as its entry. Others, mostly names, lose their ending by the rules of a stemmer.
What is written together with a word is in `tongues.toml`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.util import find_spec

from attribution.text.languages.language_data import (
    Tongue,
    dictionary_form,
    is_known,
    tongue_data,
    words_of_language,
)

_MARKS = re.compile("[\u0e2f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200c-\u200f]")
_DOTTED_I = "i\u0307"
_KOREAN_PARTICLE = re.compile(
    f"(?:{'|'.join(sorted(words_of_language('common', 'korean_endings'), key=len, reverse=True))})요?$"
)
# A syllable that ends in ㅆ marks the past; what follows it says how the sentence ends.
_KOREAN_PAST = re.compile(f"(?<=[{''.join(map(chr, range(0xAC14, 0xD7A4, 28)))}])(?:다|어요|어|습니다|대요|네요|고)$")
_KOREAN_SURE = "를을에는"
_SHORTEST, _SHORTEST_WORD, _SHORTEST_CORE = 2, 3, 4


UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_ACCENTS = re.compile("[\u0300-\u036f]")
_WHOLE = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ß": "ss", "æ": "ae", "œ": "oe"}
    | {"Ø": "O", "Ł": "L", "Đ": "D", "Ð": "D", "Þ": "Th", "Æ": "Ae", "Œ": "Oe"}
)
"""Letters that Unicode does not take apart."""


def without_accents(word: str) -> str:
    """A word as it is often typed, without the marks of Latin letters."""
    return word if word.isascii() else _ACCENTS.sub("", unicodedata.normalize("NFD", word).translate(_WHOLE))


def plain_letters(text: str, tongue: Tongue = "en") -> str:
    """A casefolded text with one letter for each that is written in several ways, and without marks over letters."""
    if text.isascii():
        return text
    return _MARKS.sub("", text.replace(_DOTTED_I, "i").translate(_plain(tongue)))


def lower_case(text: str, tongue: Tongue) -> str:
    """A text in lower case, its letters plain; Turkish has two letters i."""
    if tongue == "tr":
        text = text.replace("İ", "i").replace("I", "ı")
    return plain_letters(text.casefold(), tongue)


def same_word(word: str, other: str, tongue: Tongue) -> bool:
    """Whether two words in lower case are forms of one."""
    forms, other_forms = bases(word, tongue), bases(other, tongue)
    if forms[0] in other_forms or other_forms[0] in forms:
        return True
    return "stemmer" in tongue_data(tongue) and not set(forms).isdisjoint(other_forms)


@lru_cache(maxsize=32768)
def base(word: str, tongue: Tongue) -> str:
    """A word in lower case without all that its language adds to it, for comparisons of many words at once."""
    if "clitics" in tongue_data(tongue):
        return _names(tongue).get(word) or _without_clitics(word, tongue, _SHORTEST_WORD)
    return bases(word, tongue)[0]


@lru_cache(maxsize=32768)
def bases(word: str, tongue: Tongue) -> tuple[str, ...]:
    """A word in lower case without what its language adds to it; then what it may be besides."""
    name = _names(tongue).get(word)
    if name is not None:
        return (name,)
    if "clitics" in tongue_data(tongue):
        whole = _without_clitics(word, tongue, _SHORTEST_CORE)
        return whole, _without_clitics(whole, tongue, _SHORTEST)
    if tongue == "ko":
        return (_without_particles(word),)
    if "dictionary" not in tongue_data(tongue):
        return (word,)
    entry = _dictionary_entry(word, tongue)
    shorter = _stemmer(tongue_data(tongue)["stemmer"])(word)
    return _names(tongue).get(entry, entry), word, *([shorter] if len(shorter) >= _SHORTEST_CORE else [])


def _dictionary_entry(word: str, tongue: Tongue) -> str:
    entry = dictionary_form(word, tongue)
    if entry != word or is_known(word, tongue):
        return lower_case(entry, tongue)
    # The dictionary lists names with a capital letter, and not all of their forms.
    capital = "İ" if tongue == "tr" and word[:1] == "i" else word[:1].upper()
    return _stem(lower_case(dictionary_form(capital + word[1:], tongue), tongue), tongue)


def _stem(word: str, tongue: Tongue) -> str:
    """A word without endings; endings are added to endings, so that it is looked at again."""
    shorten = _stemmer(tongue_data(tongue)["stemmer"])
    while len(shorter := shorten(word)) >= _SHORTEST_WORD and shorter != word:
        word = shorter
    return word


def _without_clitics(word: str, tongue: Tongue, least: int) -> str:
    """A word without clitics, as long as `least` letters are left; an article is hardly ever a part of the word."""
    articles = tongue_data(tongue)["articles"].split()
    for _ in word:
        clitic = next((part for part in _clitics(tongue) if word.startswith(part)), "")
        if not clitic or len(word) - len(clitic) < (_SHORTEST if clitic.endswith(tuple(articles)) else least):
            break
        word = word[len(clitic) :]
        if least == _SHORTEST:
            break
    for pattern, ending in _endings(tongue):
        word = pattern.sub(ending, word)
    return word


def _without_particles(word: str) -> str:
    word = _KOREAN_PAST.sub("", word)
    while match := _KOREAN_PARTICLE.search(word):
        # Of words of one syllable only what is hardly ever a part of a word is taken.
        if match.start() < 1 or (match.start() == 1 and len(match[0]) == 1 and match[0] not in _KOREAN_SURE):
            break
        word = word[: match.start()]
    return word


@cache
def _names(tongue: Tongue) -> dict[str, str]:
    """Words → the number in digits, or the month in English, that they name."""
    data = tongue_data(tongue)
    names = {
        lower_case(word, tongue): name
        for name, words in _pairs(f"{data.get('numbers', '')} {data.get('months', '')}")
        for word in words.split(",")
    }
    ones = [(word, int(number)) for word, number in names.items() if number.isdecimal() and int(number) < 10]
    tens = [(word, int(number)) for number, word in _pairs(data.get("tens", ""))]
    return names | {ten + one: str(number + ones_of) for ten, number in tens for one, ones_of in ones}


def _pairs(row: str) -> list[tuple[str, str]]:
    return [(first, second) for first, _, second in (entry.partition(":") for entry in row.split())]


@cache
def _plain(tongue: Tongue) -> dict[int, str]:
    groups = (*words_of_language("common", "letters"), *tongue_data(tongue).get("letters", "").split())
    letters = {letter: group[0] for group in groups for letter in group[1:]}
    if tongue == "tr":
        del letters["ı"]
    return str.maketrans(letters)


@cache
def _clitics(tongue: Tongue) -> tuple[str, ...]:
    return tuple(plain_letters(clitic) for clitic in tongue_data(tongue)["clitics"].split())


@cache
def _endings(tongue: Tongue) -> tuple[tuple[re.Pattern[str], str], ...]:
    entries = (entry.rpartition("=") for entry in tongue_data(tongue).get("endings", "").split())
    return tuple((re.compile(pattern), ending) for pattern, _, ending in entries)


@cache
def _stemmer(name: str) -> Callable[[str], str]:
    if find_spec("snowballstemmer") is None:
        return str
    import snowballstemmer

    shorten: Callable[[str], str] = snowballstemmer.stemmer(name).stemWord
    return shorten
