"""Stems: the dictionary form of a word, so that its other forms count as the same word.

The forms are those of a dictionary for each language. What is added is little: participles and nouns of action count as
their verb, a few irregular forms that the dictionary takes for other words, and colloquial words for family, pictures
and appliances as their usual word.
"""

from __future__ import annotations

import re

from attribution.constants import SHORTEST_VERB
from attribution.text.languages.language_data import (
    LANGUAGES,
    Language,
    dictionary_form,
    is_known,
    words_of_language,
)
from attribution.text.languages.reading_language import cached_in_language, language, tongue, tongue_of_word
from attribution.text.languages.times import english_name
from attribution.text.word_forms import UMLAUTS, base, lower_case, without_accents

_ALSO = {
    form: lemma
    for lemma, _, forms in (entry.partition(":") for entry in words_of_language("en", "lemmas"))
    for form in forms.split(",")
}
_SCRIPTS: dict[str, re.Pattern[str]] = {
    "uk": re.compile("[іїєґ]"),
    "el": re.compile("[\u03ac-\u03ce]"),
    "hy": re.compile("[\u0561-\u0587]"),
}
"""Languages that are known by the letters of a single word, whatever the language of the conversation."""
_NOT_FROM_A_VERB = frozenset(words_of_language("en", "no_nouns_of_action"))


@cached_in_language(32768)
def stem(word: str) -> str:
    """The lemma of a word in the language that is read, in lower case; a number loses leading zeros.

    The case of a German word tells a noun (`Reis`) from a verb (`reis`). A word of time is given in English.
    """
    if is_number(word):
        return word.lstrip("0") or "0"
    lower, read = word.lower(), language()
    script = next((code for code, letter in _SCRIPTS.items() if letter.search(lower)), None)
    if script is not None:
        return dictionary_form(word, script).lower()
    own = tongue_of_word(lower) or tongue()
    if own not in LANGUAGES:
        return base(lower_case(word, own), own)
    if read == "en":
        return _english(lower)
    english = english_name(lower, read)
    if english is not None:
        return _english(english)
    if read == "de" and word.endswith("s") and not is_known(word, "de"):
        # Mostly the genitive of a name; what only looks like one loses its last letter everywhere.
        word = word[:-1]
    form = dictionary_form(word, read)
    if read == "fr":
        form = _of_participle(form.lower(), ("é", "ée", "és", "ées"), ("er",), read)
    elif read == "es":
        form = _of_participle(form.lower(), ("ado", "ada", "ados", "adas"), ("ar",), read)
        form = _of_participle(form, ("ido", "ida", "idos", "idas"), ("er", "ir"), read)
    # The dictionary has the usual spelling alone, and few names.
    return _spelt_otherwise(form.lower(), word, read)


def _spelt_otherwise(form: str, word: str, language: Language) -> str:
    """A word as all of its spellings: with ss and ae in German, and names without accents in French and Spanish."""
    if language == "de":
        return without_accents(form.casefold().translate(UMLAUTS))
    return without_accents(form) if word[:1].isupper() else form


def is_number(word: str) -> bool:
    """Whether a content word is a number: it has no paraphrase."""
    return word.removeprefix("\u2212")[:1].isdigit()


def _english(word: str) -> str:
    word = without_accents(_ALSO.get(word, word))
    if len(word) <= 2 or not word.isascii():
        return word
    form = dictionary_form(word, "en").lower()
    # The dictionary gives `painting` for `paintings`, and `paint` for that.
    form = _ALSO.get(form, form)
    again = form if form in _ALSO.values() else dictionary_form(form, "en").lower()
    if again.endswith("ing"):
        return _of_noun(again, "ing")
    return _of_noun(again, "ion") if again.endswith("ion") else again


def _of_participle(word: str, endings: tuple[str, ...], infinitives: tuple[str, ...], language: Language) -> str:
    for ending in endings:
        if word.endswith(ending):
            verbs = (word[: -len(ending)] + infinitive for infinitive in infinitives)
            return next((verb for verb in verbs if is_known(verb, language)), word)
    return word


def _of_noun(word: str, ending: str) -> str:
    """The verb that a noun of action is made from, if the dictionary has it: adopt for adoption, camp for camping."""
    base = word[: -len(ending)]
    least = SHORTEST_VERB + (ending == "ion")
    if word in _NOT_FROM_A_VERB or len(base) < least:
        return word
    doubled = base[:-1] if base[-1] == base[-2] else None
    return next((verb for verb in (base, f"{base}e", doubled) if verb and is_known(verb, "en")), word)
