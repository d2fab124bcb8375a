"""Words in scripts that put no space between them, by ICU's dictionaries.

Without `icu4py` each letter of Thai, Lao, Khmer and Burmese stands alone, and these languages count as not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import accumulate

UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""A letter of a script that puts no space between words: Thai, Lao, Burmese, Khmer."""

UNSPACED_RUN = re.compile(rf"{UNSPACED.pattern}+")
CJK_CHARACTER = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


@cache
def is_segmented() -> bool:
    """Whether ICU is there to find words."""
    return find_spec("icu4py") is not None


@lru_cache(maxsize=8192)
def spaced(text: str) -> str:
    """A text with spaces between the words of scripts that put none there."""
    if text.isascii():
        return text
    return UNSPACED_RUN.sub(lambda run: f" {' '.join(_words(run[0]))} ", text)


def has_run(needle: Sequence[str], haystack: Sequence[str]) -> bool:
    """Whether some tokens of such a script are in others, in however many pieces, from one word's edge to another's."""
    joined = "".join(needle)
    for start in range(len(haystack)):
        run = ""
        for token in haystack[start:]:
            run += token
            if not joined.startswith(run):
                break
            if run == joined:
                return True
    return False


@lru_cache(maxsize=8192)
def word_beginnings(tokens: tuple[str, ...]) -> frozenset[int]:
    """The places of tokens at which a Chinese or Japanese word may begin; of all others it is known that none does."""
    if not is_segmented():
        return frozenset(range(len(tokens)))
    starts = {0, *accumulate(map(len, _words("".join(tokens))))}
    places = accumulate(map(len, tokens), initial=0)
    return frozenset(at for at, place in enumerate(places) if place in starts)


def _words(run: str) -> Iterator[str]:
    if not is_segmented():
        return iter(run)
    from icu4py.breakers import WordBreaker

    return iter(WordBreaker(run, "en"))
