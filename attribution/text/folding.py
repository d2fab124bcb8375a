"""Words of a reply in the form in which an answer has them, where a language's rules leave no doubt.

Nothing here is a guess at a meaning: an ending that is always a case or a particle, a letter that is only another way
to write one. What a language does beyond that (plural, verbs) stays different, as it does in English.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from attribution.text.languages.language_data import (
    LANGUAGES,
    Language,
    Tongue,
    dictionary_form,
    function_words,
    is_known,
)
from attribution.text.languages.reading_language import (
    cached_in_language,
    language,
    tongue,
    tongue_of_word,
    written_in,
)
from attribution.text.word_forms import UMLAUTS, lower_case, same_word, without_accents

_SEPARATORS = str.maketrans("٬٫", ",.")
TURKISH_CASE = re.compile(
    r"(\w{2,})['’]([dt][ae](?:n|ki)?|y?[aeıiuü]|n?[ıiuü]n|y?l[ae]|[lsdt][ıiuü]r?|nd[ae]n?)(?!\w)", re.I
)
"""A name with its ending, which Turkish cuts off: Ankara'da, Ayşe'nin."""
_DETERMINER = re.compile("(mein|dein|sein|ihr|unser|kein|dies|jed)(?:e[nmrs]?)?")
_UKRAINIAN, _GREEK = re.compile("[іїєґ]"), re.compile("[\u03b1-\u03c9]")
_SAME_START = 3
_WORD = re.compile(r"[^\W\d_]+")
_ADJECTIVE = re.compile("e[nrms]?$")


def western_digits(text: str) -> str:
    """A text with the digits of all scripts as 0 to 9, and Arabic separators as English ones."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text).translate(_SEPARATORS)


def without_turkish_case(text: str) -> dict[str, str]:
    """The words of a text with a Turkish ending behind an apostrophe → the same words without it; both normalised."""
    cased = TURKISH_CASE.findall(text) if "'" in text or "’" in text else []
    return {lower_case(f"{name}{case}", tongue()): lower_case(name, tongue()) for name, case in cased}


def as_in(reply_words: Sequence[str], accepted: Sequence[str], bare: Mapping[str, str]) -> tuple[str, ...]:
    """The words of a reply, each in the form in which an accepted answer has it if it is surely the same word.

    `bare` has words of either without an ending (`without_turkish_case`).
    """
    accepted_words = set(accepted)

    def same(word: str, other: str) -> bool:
        return bare.get(word, word) == bare.get(other, other) or _is_same(word, other)

    return tuple(
        word if word in accepted_words else next((form for form in accepted if same(word, form)), word)
        for word in reply_words
    )


def shared_language(text: str, other: str) -> Tongue | None:
    """German, Spanish or French, if small words and a word that English lacks show that two texts are in it.

    Another language where the letters of the other text show it. None where that is not sure, and for English.
    """
    written = written_in([other])
    if written is not None:
        # Only what is beside Chinese signs tells whether they are Japanese.
        return written_in([text, other]) or written if written == "zh" else written
    small = _small_words(text) + _small_words(other)
    best = max(LANGUAGES, key=lambda language: small[language])
    if best == "en" or any(small[rival] >= small[best] for rival in LANGUAGES if rival != best):
        return None
    words = (word for sample in (other, text) for word in _WORD.findall(sample.casefold()))
    telling = (word for word in words if word not in function_words(best))
    return best if any(is_known(word, best) and not is_known(word, "en") for word in telling) else None


@lru_cache(maxsize=8192)
def _small_words(text: str) -> Counter[Language]:
    words = _WORD.findall(text.casefold())
    return Counter(language for language in LANGUAGES for word in words if word in function_words(language))


def _is_same(word: str, other: str) -> bool:
    # Most pairs of words are not worth a look.
    foreign = tongue() not in LANGUAGES or not (word.isascii() and other.isascii())
    return (foreign or word[:_SAME_START] == other[:_SAME_START]) and _is_form(word, other)


@cached_in_language(16384)
def _is_form(word: str, other: str) -> bool:
    """Whether two different words are forms of one."""
    for script, code in ((_UKRAINIAN, "uk"), (_GREEK, "el")):
        if script.search(word) and script.search(other):
            return _lemma(word, code) == _lemma(other, code)
    tongues = {tongue_of_word(form) or tongue() for form in (word, other) if not form.isdigit()}
    own = tongues.pop() if len(tongues) == 1 else "en"
    if own not in LANGUAGES:
        return same_word(word, other, own)
    if own != "en" and _lemma(word, own) == _lemma(other, own):
        return True
    if own != "de" and without_accents(word) == without_accents(other):
        return True
    determiners = _DETERMINER.fullmatch(word), _DETERMINER.fullmatch(other)
    if determiners[0] and determiners[1]:
        return determiners[0][1] == determiners[1][1]
    spelt, other_spelt = (without_accents(form.translate(UMLAUTS)) for form in (word, other))
    return spelt == other_spelt or _are_german_adjectives(word, other)


def _lemma(word: str, language: str) -> str:
    # The dictionary lists names with a capital letter.
    form = dictionary_form(word, language)
    return (form if form != word else dictionary_form(word.capitalize(), language)).casefold()


def _are_german_adjectives(word: str, other: str) -> bool:
    """Whether two words are one German adjective with other endings; the dictionary has nouns with a capital letter.

    Words that are English, too, are German where German is read.
    """
    if not (_ADJECTIVE.search(word) and _ADJECTIVE.search(other)) or not (
        is_known(word, "de") and is_known(other, "de")
    ):
        return False
    lemma = dictionary_form(word, "de")
    return (
        lemma.islower()
        and lemma == dictionary_form(other, "de")
        and (language() == "de" or not (is_known(word, "en") and is_known(other, "en")))
    )
