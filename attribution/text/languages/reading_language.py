"""The language in which texts are read: found once for a conversation, and in force while its texts are compared.

Words mean different things in different languages (`die`, `son`, `once`), so nothing is read in several at once.
Chinese and Japanese characters are read in the same way whatever the language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from itertools import islice
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from attribution import constants
from attribution.text.languages.language_data import LANGUAGES, Language, function_words, is_known, near_function_words

_WORD = re.compile(r"[^\W\d_]+")
_READING: ContextVar[Language] = ContextVar("reading", default="en")


def language() -> Language:
    """The language in which texts are read at present; English unless `reading` says otherwise."""
    return _READING.get()


@contextmanager
def reading(language: Language) -> Iterator[None]:
    """Read texts in a language for as long as the context is open, in this thread or task."""
    token = _READING.set(language)
    try:
        yield
    finally:
        _READING.reset(token)


def language_of(texts: Iterable[str]) -> Language:
    """The language of a conversation's texts, by the function words in the first of them; English if that is unclear.

    A text in another language must have clearly more words of that language than of any other.
    """
    counts = Counter(word for text in islice(texts, constants.LANGUAGE_SAMPLE) for word in _words(text))
    hits = {language: sum(counts[word] for word in function_words(language)) for language in LANGUAGES}
    (first, most), (_, second) = sorted(hits.items(), key=lambda hit: -hit[1])[:2]
    return first if most >= constants.LANGUAGE_WORDS and most >= constants.LANGUAGE_LEAD * second else "en"


def is_read(texts: Iterable[str]) -> bool:
    """Whether texts are in a language that is read: hardly any other script, and as many small words as it has.

    Of short texts a few different small words are enough, or that most words are in its dictionary. What is too short
    for that too counts as read.
    """
    sample = list(islice(texts, constants.LANGUAGE_SAMPLE))
    letters = [sign for text in sample for sign in text if sign.isalpha()]
    if sum(map(_is_latin, letters)) < constants.LATIN * len(letters):
        return False
    words = [word for text in sample for word in _words(text)]
    small = {language: [word for word in words if word in function_words(language)] for language in LANGUAGES}
    best = sorted(small, key=lambda language: -len(small[language]))
    most = small[best[0]]
    if any(sum(word in own for word in words) > len(most) for own in near_function_words()):
        return False
    if len(words) >= constants.ENOUGH_WORDS:
        return len(most) >= constants.SMALL_WORDS * len(words)
    if len(set(most)) >= constants.FEW_SMALL_WORDS:
        return True
    # A dictionary lacks names, so only words without a capital tell.
    lower = [word for text in sample for word in _WORD.findall(text) if word.islower()]
    return any(_is_known_to(language, lower) for language in best)


def _is_known_to(language: Language, words: Sequence[str]) -> bool:
    unknown = sum(not is_known(word, language) for word in words)
    return unknown < 2 or unknown <= (1 - constants.KNOWN_WORDS) * len(words)


def _is_latin(letter: str) -> bool:
    return letter < "\u0250" or "\u1e00" <= letter <= "\u1eff"


class _InALanguage(Protocol):
    @property
    def language(self) -> Language: ...


_S = TypeVar("_S", bound=_InALanguage)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def cached_in_language(maxsize: int = 8192) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A function of texts whose results are kept for each language in which it is called."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        cached: Callable[..., _R] = lru_cache(maxsize)(lambda _, *args, **kwargs: function(*args, **kwargs))

        @wraps(function)
        def read(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            return cached(language(), *args, **kwargs)

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
    return "".join(sign if sign.isalpha() else " " for sign in text.casefold()).split()
