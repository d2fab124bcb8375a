"""Stems: a word without its inflection, so that other forms of it count as the same word."""

from __future__ import annotations

from functools import lru_cache

from attribution.text.lemmas import LEMMAS

_ENDINGS = ("ions", "ion", "ingly", "edly", "ing", "ed", "ly", "es", "s", "e")


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A lower-case word without its inflection, crudely: `adopt`, `adopts`, `adopting` and `adoption` become one.

    A number loses leading zeros.
    """
    if is_number(word):
        return word.lstrip("0") or "0"
    word = LEMMAS.get(word, word)
    if len(word) <= 3 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            stem = word[: -len(ending)]
            doubled = len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz" and ending in ("ing", "ed")
            return stem[:-1] if doubled else stem
    return word


def is_number(word: str) -> bool:
    """Whether a content word is a number: it has no paraphrase."""
    return word[:1].isdigit()
