"""The tokens of a text, as every comparison by words sees them, and whether one text contains another.

Texts are normalised as in SQuAD (Rajpurkar et al. 2016, evaluation script v1.1): lower case, no punctuation, no
articles. Four refinements: number words up to ninety-nine become digits, a hyphen separates words (so that
`twenty-two`, `twenty two` and `22` agree, and none of them contains `20`), a decimal point stays, and Chinese and
Japanese are split into characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from attribution.text.numbers import in_digits

CJK_CHARACTER = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")

_ARTICLES = frozenset(("a", "an", "the"))
_DASHES = re.compile(r"[-\u2010-\u2015/_]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_PUNCTUATION = re.compile(r"(?!(?<=\d)\.(?=\d))[^\w\s]")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b")


@lru_cache(maxsize=16384)
def normalise(text: str) -> tuple[str, ...]:
    """The tokens of `text` that are compared. A text of nothing but articles keeps them."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = _PUNCTUATION.sub("", _THOUSANDS.sub("", _DASHES.sub(" ", text)))
    words = CJK_CHARACTER.sub(lambda character: f" {character[0]} ", text).split()
    kept = [word for word in words if word not in _ARTICLES] or words
    return tuple(in_digits(kept))


def words(text: str) -> tuple[str, ...]:
    """The tokens of `text` without possessive endings: of `Mara's tortoise`, `mara` and `tortoise`."""
    return normalise(_POSSESSIVE.sub("", text))


def contains(text: str, value: str) -> bool:
    """Whether the tokens of `value` are in `text` one after the other; a possessive ending makes no difference.

    Nothing contains a value without tokens.
    """
    return _occurs(normalise(value), normalise(text)) or _occurs(words(value), words(text))


def word_count(text: str) -> int:
    """Length of a text in words; two Chinese or Japanese characters count as one word."""
    characters = len(CJK_CHARACTER.findall(text))
    return len(CJK_CHARACTER.sub(" ", text).split()) + (characters + 1) // 2


def _occurs(needle: Sequence[str], haystack: Sequence[str]) -> bool:
    size = len(needle)
    return size > 0 and any(haystack[at : at + size] == needle for at in range(len(haystack) - size + 1))
