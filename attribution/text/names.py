"""Names: which words of a question are names, and whether two names can be one person's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from nicknames import NickNamer

from attribution.constants import SHORTEST_ABBREVIATION
from attribution.text.content import MONTH_WORDS, WEEKDAY_WORDS, content_of
from attribution.text.languages.language_data import (
    LANGUAGES,
    Language,
    all_function_words,
    compiled_of_language,
    dictionary_form,
    function_words,
    is_known,
    words_of_language,
)
from attribution.text.languages.reading_language import cached_in_language, language
from attribution.text.languages.times import english_name
from attribution.text.tokens import cased_words

_CAPITALISED = re.compile(r"(?<!\w)[^\W\d_a-zß-öø-ÿ]\w+")
_PATTERNS = compiled_of_language("common", "names")
_TITLES = frozenset(words_of_language("common", "titles"))
_FEMININE = re.compile("[ae]?|n[ae]|l?l[ae]|elle|ett[ae]|in[ae]")


@cached_in_language(4096)
def names_in(text: str) -> frozenset[str]:
    """The content words that a text uses as names, other than its first word: spelt with a capital letter.

    In English these are not the names of days, months and nationalities, in German not its nouns.
    """
    names: set[str] = set()
    for word in _CAPITALISED.finditer(text):
        before = text[: word.start()]
        begins = not before.strip(" ¿¡\"'«“(") or re.search(r"[.?!]\s+[¿¡]?$", before)
        titled = before.rstrip(" .").rpartition(" ")[2].lower() in _TITLES
        if begins and not titled:
            continue
        noun = language() == "de" and _PATTERNS["before_a_noun"].search(before) is not None and not titled
        if _may_name(word[0], after_article=noun):
            names |= content_of(word[0])
    return frozenset(names)


def is_name(word: str) -> bool:
    """Whether a word of an answer may be a name, by itself: capitalised, and no German noun."""
    return word[:1].isupper() and _may_name(word)


def short_for(text: str, names: Iterable[str]) -> frozenset[str]:
    """The content words of those names that a text abbreviates or has a nickname of: Mel for Melanie, Bob for Robert.

    A word that merely begins like a name, such as pet for Petra, does not abbreviate it.
    """
    capitalised = {word.casefold() for word in _CAPITALISED.findall(text)}
    parts = [part for name in names for part in cased_words(name)]
    return frozenset(
        word for part in parts if any(is_short_for(short, part) for short in capitalised) for word in content_of(part)
    )


@cached_in_language(4096)
def is_short_for(short: str, name: str) -> bool:
    """Whether one given name is the other's nickname, or its beginning but not the other sex's form: Eric, Erica."""
    short, name = short.casefold(), name.casefold()
    if short == name:
        return False
    formal = _english().canonicals_of(short) if language() == "en" else _formal_names(language()).get(short, ())
    if name in formal:
        return True
    ending = name[len(short) :]
    return len(short) >= SHORTEST_ABBREVIATION and name.startswith(short) and _FEMININE.fullmatch(ending) is None


def is_word(name: str) -> bool:
    """Whether a given name is a common word as well: Will, Mark, Rose."""
    return name.casefold() in _word_names()


def has_capital(text: str, name: str) -> bool:
    """Whether a text has a name with a capital anywhere, as a common word has none but where a sentence begins."""
    return any(match[0][0].isupper() for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.I))


def written_as_name(text: str, name: str) -> bool:
    """Whether a text has a name that is a common word as people write names.

    It has a capital that no sentence, line or month gives it, or what follows makes it a person: Will's, Mark is.
    """
    for match in re.finditer(rf"(?<!\w){re.escape(name[:1].upper() + name[1:])}(?!\w)", text):
        before, after = text[: match.start()], text[match.end() :]
        if _PATTERNS["of_a_person"].match(after):
            return True
        begins = _PATTERNS["begins"].search(before) is not None
        month = name.casefold() in MONTH_WORDS and (_PATTERNS["in_a_month"].search(before) or re.match(r",? \d", after))
        if not begins and not month:
            return True
    return False


def _may_name(word: str, *, after_article: bool = False) -> bool:
    lower = word.casefold()
    if lower in _TITLES or lower in function_words(language()) or english_name(lower, language()) is not None:
        return False
    if language() == "en":
        of_a_country = _PATTERNS["of_a_country"].fullmatch(word) and is_known(lower, "en")
        return not (content_of(word) <= MONTH_WORDS | WEEKDAY_WORDS or of_a_country)
    return language() != "de" or not (after_article or _is_german_noun(word))


def _is_german_noun(word: str) -> bool:
    """Whether the dictionary lists it in another form; names are listed as they are, but for a genitive."""
    return is_known(word, "de") and dictionary_form(word, "de") not in (word, word.removesuffix("s"))


@lru_cache(maxsize=1)
def _english() -> NickNamer:
    return NickNamer()


@cache
def _word_names() -> frozenset[str]:
    """Names that are words, casefolded; function words among them, since any may be a name: Will, May, Don."""
    names = (word.casefold() for language in LANGUAGES for word in words_of_language(language, "word_names"))
    return all_function_words().union(names)


@cache
def _formal_names(language: Language) -> dict[str, frozenset[str]]:
    """What a nickname can be short for; both casefolded, names of two words with a hyphen."""
    entries = (entry.partition(":") for entry in words_of_language(language, "nicknames"))
    return {short: frozenset(formal.split(",")) for short, _, formal in entries}
