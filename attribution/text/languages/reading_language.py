"""The language in which texts are read: found once for a conversation, and in force while its texts are compared.

Words mean different things in different languages (`die`, `son`, `once`), so nothing is read in several at once.
Chinese and Japanese characters are read in the same way whatever the language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cache, lru_cache, wraps
from importlib.util import find_spec
from itertools import islice
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from attribution import constants
from attribution.text.languages.language_data import (
    LANGUAGES,
    Language,
    Tongue,
    function_words,
    is_known,
    near_function_words,
    tongue_data,
    tongues_with,
    words_of_language,
)
from tracing.files.depth import structured
from tracing.temporary_values import context_with

MEASURED = (
    "English, German, French, Spanish, Chinese, Japanese, Korean, Russian, Arabic, Hebrew, Turkish, Finnish, "
    "Hungarian, Thai, Khmer and Lao"
)
"""The languages for which reading was measured, for messages."""

_WORD = re.compile(r"[^\W\d_]+")
_READING: ContextVar[Tongue] = ContextVar("reading", default="en")
_READ_IN_FULL: dict[Tongue, Language] = {language: language for language in LANGUAGES}
_SCRIPTS = {tongue: re.compile(tongue_data(tongue)["script"]) for tongue in tongues_with("script")}
_TELLING = {tongue: re.compile(tongue_data(tongue)["telling"]) for tongue in tongues_with("telling")}
_FOREIGN = {tongue: re.compile(tongue_data(tongue)["foreign"]) for tongue in tongues_with("foreign")}
_LATIN_TONGUES: tuple[Tongue, ...] = tuple(tongue for tongue in _TELLING if tongue not in _SCRIPTS)
_NEEDED = {"segmented": "icu4py", "stemmer": "snowballstemmer"}


def language() -> Language:
    """The language whose patterns texts are read with at present: English unless `reading` says otherwise."""
    return _READ_IN_FULL.get(_READING.get(), "en")


def tongue() -> Tongue:
    """The language in which texts are read at present, of which maybe only the words are known."""
    return _READING.get()


def reading(language: Tongue) -> AbstractContextManager[None]:
    """Read texts in a language for as long as the context is open, in this thread or task."""
    return context_with(_READING, language)


@cache
def small_words(tongue: Tongue) -> frozenset[str]:
    """The function words that count while texts are read in a language: its own, and those of its patterns."""
    return function_words(tongue) | (frozenset() if tongue in LANGUAGES else function_words("en"))


def language_of(texts: Iterable[str]) -> Tongue:
    """The language of a conversation's texts, by their letters and function words; English if that is unclear.

    A text in another language must have clearly more words of that language than of any other.
    """
    return _language_of(_sample(texts))


@lru_cache(maxsize=64)
def _language_of(sample: tuple[str, ...]) -> Tongue:
    written = written_in(sample)
    if written is not None:
        return written
    counts = Counter(word for text in sample for word in _words(text))
    hits: dict[Tongue, int] = {}
    for candidate in (*LANGUAGES, *_LATIN_TONGUES):
        telling = sum(counts[word] for word in counts if _tells(word, candidate))
        hits[candidate] = telling + sum(counts[word] for word in function_words(candidate))
    for candidate in LANGUAGES:
        hits[candidate] += sum(text.count(sign) for text in sample for sign in words_of_language(candidate, "signs"))
    (first, most), (_, second) = sorted(hits.items(), key=lambda hit: -hit[1])[:2]
    least = constants.LANGUAGE_WORDS if first in LANGUAGES else 1
    return first if most >= least and most >= constants.LANGUAGE_LEAD * second else "en"


def written_in(texts: Sequence[str]) -> Tongue | None:
    """The language by its letters alone, where most of the texts are in a script that hardly another language has."""
    if all(map(str.isascii, texts)):
        return None
    joined = "".join(texts).casefold()
    letters = sum(map(str.isalpha, joined))
    counts = {candidate: len(script.findall(joined)) for candidate, script in _SCRIPTS.items()}
    best = max(counts, key=lambda candidate: counts[candidate])
    if 2 * counts[best] <= letters:
        return None
    if best == "ja":
        return "ja" if _TELLING["ja"].search(joined) else "zh"
    strange = len(_FOREIGN[best].findall(joined)) if best in _FOREIGN else 0
    return None if strange > constants.FOREIGN_LETTERS * letters else best


def tongue_of_word(word: str) -> Tongue | None:
    """The language by the first letter of a word; None for Latin letters, Chinese ones count as Chinese."""
    return None if word.isascii() else _tongue_of_letter(word[:1])


@cache
def _tongue_of_letter(letter: str) -> Tongue | None:
    return next((candidate for candidate, script in _SCRIPTS.items() if script.match(letter)), None)


def is_read(texts: Iterable[str]) -> bool:
    """Whether texts are in a language that is read: hardly any other script, and as many small words as it has.

    Of short texts a few different small words are enough, and of all that most words are in its dictionary. What is too
    short for that too counts as read; data, such as the events of a program, is in no language.
    """
    return _is_read(_sample(texts))


@lru_cache(maxsize=64)
def _is_read(texts: tuple[str, ...]) -> bool:
    sample = [text for text in texts if isinstance(structured(text), str)]
    letters = sum(sum(map(str.isalpha, text)) for text in sample)
    strange = sum(_is_strange(sign) for text in sample if not text.isascii() for sign in text)
    if letters - strange < constants.LATIN * letters:
        written = written_in(sample)
        return written is not None and _has_libraries(written)
    counts = Counter(word for text in sample for word in _words(text))

    def occurrences(words: Iterable[str]) -> int:
        return sum(counts[word] for word in words)

    small = {language: counts.keys() & function_words(language) for language in LANGUAGES}
    best = sorted(small, key=lambda language: -occurrences(small[language]))
    most = small[best[0]]
    tongue = language_of(sample)
    if tongue in _LATIN_TONGUES:
        most = {word for word in counts if word in function_words(tongue) or _tells(word, tongue)}
    known, total = occurrences(most), counts.total()
    if any(occurrences(counts.keys() & own) > known for own in near_function_words()):
        return False
    if tongue in _LATIN_TONGUES:
        return known >= constants.SMALL_WORDS_BESIDE_ENDINGS * total and _has_libraries(tongue)
    if total >= constants.ENOUGH_WORDS:
        enough = known >= constants.SMALL_WORDS * total
    else:
        enough = len(most) >= constants.FEW_SMALL_WORDS
    if enough:
        return True
    # A dictionary lacks names, so only words without a capital tell.
    lower = [word for text in sample for word in _WORD.findall(text) if word.islower()]
    return any(_is_known_to(language, lower) for language in best)


def _sample(texts: Iterable[str]) -> tuple[str, ...]:
    """The first texts. What they tell is kept: the pasts of a conversation begin alike."""
    return tuple(islice(texts, constants.LANGUAGE_SAMPLE))


def _tells(word: str, candidate: Tongue) -> bool:
    return candidate in _LATIN_TONGUES and _TELLING[candidate].search(word) is not None


@cache
def _has_libraries(tongue: Tongue) -> bool:
    """Whether the libraries are installed without which a language is not read as it was measured."""
    return all(find_spec(library) is not None for key, library in _NEEDED.items() if key in tongue_data(tongue))


def is_read_in_full(texts: Iterable[str]) -> bool:
    """Whether texts are in a language of which more than words is read."""
    sample = _sample(texts)
    return is_read(sample) and language_of(sample) in LANGUAGES


def _is_known_to(language: Language, words: Sequence[str]) -> bool:
    unknown = sum(not is_known(word, language) for word in words)
    return unknown < 2 or unknown <= (1 - constants.KNOWN_WORDS) * len(words)


def _is_strange(sign: str) -> bool:
    """Whether a sign is a letter, and none of the Latin ones."""
    return sign >= "\u0250" and sign.isalpha() and not "\u1e00" <= sign <= "\u1eff"


class _InALanguage(Protocol):
    @property
    def language(self) -> Tongue: ...


_S = TypeVar("_S", bound=_InALanguage)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def cached_in_language(maxsize: int = 8192) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A function of texts whose results are kept for each language in which it is called."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        cached: Callable[..., _R] = lru_cache(maxsize)(lambda _, *args, **kwargs: function(*args, **kwargs))

        @wraps(function)
        def read(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            return cached(_READING.get(), *args, **kwargs)

        return read

    return decorate


def in_its_language(method: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """A method during which texts are read in the `language` of its object."""

    @wraps(method)
    def read(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with reading(self.language):
            return method(self, *args, **kwargs)

    return read


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
