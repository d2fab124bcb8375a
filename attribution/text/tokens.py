"""The tokens of a text, as every comparison by words sees them, and whether one text contains another.

Texts are normalised as in SQuAD (Rajpurkar et al. 2016, evaluation script v1.1): lower case, no punctuation, no
articles. Four refinements: numbers in words become digits, a hyphen separates words (so that `twenty-two`, `twenty two`
and `22` agree, and none of them contains `20`), a decimal point stays, and Chinese and Japanese are split into
characters.
"""

from __future__ import annotations

import re
import unicodedata

from attribution.text import digits, folding, segments
from attribution.text.languages.language_data import LANGUAGES, Tongue, tongue_data, tongues_with, words_of_language
from attribution.text.languages.reading_language import cached_in_language, language, reading, tongue
from attribution.text.numbers import in_digits, without_ordinals
from attribution.text.segments import CJK_CHARACTER
from attribution.text.word_forms import lower_case

_ARTICLES: dict[Tongue, frozenset[str]] = {
    **{name: frozenset(tongue_data(name)["articles"].split()) for name in tongues_with("articles")},
    **{name: frozenset(words_of_language(name, "articles")) for name in LANGUAGES},
}
_DASHES = re.compile(r"[-\u2010-\u2015/_]")
# In the scripts of India and South East Asia vowels are marks, which `\w` leaves out.
_VOWELS = "".join(filter(lambda sign: unicodedata.category(sign) in ("Mn", "Mc"), map(chr, range(0x900, 0x1800))))
# What is tried at each letter comes first, and what must stand around it after: that takes a third of the time.
_PUNCTUATION = re.compile(rf"[^\w\s{_VOWELS}](?!(?<=\d\.)\d|(?<=\u2212)\d)")
# Korean puts no space between a number in digits and what it counts.
_COUNTED = re.compile(r"(?<=\d)(?=[가-힣])|(?<=[만억천])(?=원)")
# A time of day: 17h30, 17 h 30, 17.30 Uhr.
_CLOCK = re.compile(r"(\d(?<![\d.,:]\d)\d?)(?: ?h ?|\.(?=\d\d ?Uhr))(\d\d)(?!\d)")
_POSSESSIVE = re.compile(r"['’](?<=\w.)s\b")
# French cuts off the end of small words: l'école, qu'elle, aujourd'hui is one word.
_ELISION = re.compile(r"(?<![^\W\d_]{3})\b([cdjlmnst]|qu|jusqu|lorsqu|puisqu)['’](?=\w)", re.I)


@cached_in_language(16384)
def normalise(text: str) -> tuple[str, ...]:
    """The tokens of `text` that are compared. A text of nothing but articles keeps them."""
    read = language()
    text = lower_case(digits.with_ranges(digits.with_units(in_digits(_plain(text), read)), read), tongue())
    words, articles = _split(text), _ARTICLES.get(tongue(), _ARTICLES[read])
    return tuple([word for word in words if word not in articles] or words)


def words(text: str) -> tuple[str, ...]:
    """The tokens of `text` without possessive endings: of `Mara's tortoise`, `mara` and `tortoise`."""
    return normalise(_POSSESSIVE.sub("", text))


def cased_words(text: str) -> list[str]:
    """The words of `text` as they are spelt, without possessives, punctuation, currencies; ordinals in digits too."""
    read = language()
    text = digits.with_units(in_digits(_POSSESSIVE.sub("", _plain(text)), read))
    return _split(without_ordinals(digits.without_currencies(text, read), read))


def contains(text: str, value: str) -> bool:
    """Whether the tokens of `value` are in `text` one after the other; a possessive ending makes no difference.

    Nothing contains a value without tokens. Of money the currency counts where both name one: $1500 is 1,500 dollars.
    """
    text_tokens, value_tokens = compared(text, value)
    if _occurs(value_tokens, text_tokens):
        return True
    text_tokens, value_tokens = compared(_POSSESSIVE.sub("", text), _POSSESSIVE.sub("", value))
    return _occurs(value_tokens, text_tokens)


def compared(text: str, value: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens of a text and of a value, alike where they are surely the same: forms of a word, and of a currency."""
    text, value = money_alike(text, value)
    read = tongue()
    with reading((folding.shared_language(text, value) if read == "en" else None) or read):
        text_tokens, value_tokens = normalise(text), normalise(value)
        return folding.as_in(
            text_tokens, value_tokens, folding.without_turkish_case(text) | folding.without_turkish_case(value)
        ), value_tokens


def money_alike(text: str, value: str) -> tuple[str, str]:
    """Both texts, with a word in place of the sign or code of a currency where both name currencies."""
    read = language()
    mine, theirs = digits.currencies_in(text, read), digits.currencies_in(value, read)
    if not mine or not theirs:
        return text, value
    return digits.with_currencies_named(text, read, theirs), digits.with_currencies_named(value, read, mine)


def word_count(text: str) -> int:
    """Length of a text in words; two Chinese or Japanese characters count as one word, and four letters of Thai."""
    characters, letters = len(CJK_CHARACTER.findall(text)), len(segments.UNSPACED.findall(text))
    spaced = segments.UNSPACED_RUN.sub(" ", CJK_CHARACTER.sub(" ", text)).split()
    return len(spaced) + (characters + 1) // 2 + (letters + 3) // 4


def _plain(text: str) -> str:
    if tongue() == "tr":
        text = folding.TURKISH_CASE.sub(r"\1", text)
    text = _CLOCK.sub(r"\1:\2", text)
    # NFKC would make 11/2 of 1½.
    return folding.western_digits(unicodedata.normalize("NFKC", digits.with_shares(text)))


def _split(text: str) -> list[str]:
    if language() == "fr":
        text = _ELISION.sub(r"\1 ", text)
    if text.isascii():
        return _PUNCTUATION.sub("", _DASHES.sub(" ", text)).split()
    text = _PUNCTUATION.sub("", _DASHES.sub(" ", _COUNTED.sub(" ", segments.spaced(text))))
    return CJK_CHARACTER.sub(lambda character: f" {character[0]} ", text).split()


def _occurs(needle: tuple[str, ...], haystack: tuple[str, ...]) -> bool:
    size = len(needle)
    if size and segments.UNSPACED.match(needle[0]):
        return segments.has_run(needle, haystack)
    places = [at for at in range(len(haystack) - size + 1) if haystack[at : at + size] == needle] if size else []
    if places and CJK_CHARACTER.match(needle[0]):
        return not segments.word_beginnings(haystack).isdisjoint(places)
    return bool(places)
