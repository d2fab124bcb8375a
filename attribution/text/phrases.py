"""Set phrases: saying that something is unknown, denying it, taking it back, and asking to remember it."""

from __future__ import annotations

from functools import lru_cache

from attribution.text.content import content_of
from attribution.text.languages.language_data import LANGUAGES, Language, all_function_words, compiled_of_language
from attribution.text.languages.phrase_patterns import courtesies, denials, withdrawals
from attribution.text.languages.reading_language import language, reading
from attribution.text.tokens import normalise, words

_CJK, _PATTERNS = compiled_of_language("common", "cjk"), compiled_of_language("common", "phrases")


@lru_cache(maxsize=8192)
def clauses_of(text: str) -> tuple[str, ...]:
    """The clauses of a text, split so that a denial in one does not affect the others."""
    return tuple(clause for clause in _PATTERNS["clause_end"].split(text) if clause.strip())


def denies(clause: str) -> bool:
    """Whether a clause says that something is not so; "can't wait" and similar phrases do not."""
    return _denies(clause, language())


def says_unknown(text: str) -> bool:
    """Whether a reply says that it does not know."""
    return _says_unknown(text, language())


def is_unknown(answer: str, question: str) -> bool:
    """Whether an answer says that it is not known, and nothing more than the question says.

    A title or a name may hold such a phrase: The Forgotten Garden, the Tomb of the Unknown Soldier.
    """
    question_words = content_of(question.casefold())
    is_said, beside, untold = _beside_unknown(answer, language())
    tells = is_said or (bool(untold) and untold.isdisjoint(question_words) and not _PATTERNS["decides"].match(answer))
    return tells and beside <= question_words


def says_retracted(text: str) -> bool:
    """Whether a text says that something no longer holds, or that what was said is to be forgotten or kept private."""
    return _says_retracted(text, language())


def without_courtesies(text: str) -> str:
    """A text without requests to remember it, thanks and greetings: a text of these alone stays."""
    return _without_courtesies(text, language())


@lru_cache(maxsize=8192)
def _without_courtesies(text: str, language: Language) -> str:
    remaining = _CJK["courtesies"].sub(" ", courtesies(language).sub(" ", text.replace("’", "'")))
    with reading(language):
        return remaining if content_of(remaining) else text


@lru_cache(maxsize=8192)
def _denies(clause: str, language: Language) -> bool:
    patterns = denials(language)
    remaining = _CJK["affirmed"].sub(" ", patterns.affirmed.sub(" ", clause))
    return patterns.denied.search(remaining) is not None or _CJK["denied"].search(remaining) is not None


@lru_cache(maxsize=8192)
def _says_unknown(text: str, language: Language) -> bool:
    with reading(language):
        plain = " ".join(normalise(_PATTERNS["abbreviated"].sub(" unknown ", text))) or text
    # A reply may be in English though the conversation is not.
    patterns = [denials(reply_language).unknown for reply_language in {language, "en"}]
    return any(pattern.search(plain) for pattern in patterns) or _CJK["unknown"].search(text) is not None


@lru_cache(maxsize=8192)
def _beside_unknown(text: str, language: Language) -> tuple[bool, frozenset[str], frozenset[str]]:
    """Whether a text says that something is not known, what else it says, and the content of what may say so.

    Annotators have a phrase for it, whatever the language of the conversation.
    """
    with reading(language):
        marked = _CJK["unknown"].sub(" unknown ", _PATTERNS["abbreviated"].sub(" unknown ", text))
        remaining = " ".join(words(marked if marked == text else _CJK["beside_unknown"].sub(" ", marked)))
        is_said, untold = False, list[str]()
        for patterns in map(denials, LANGUAGES):
            remaining, count = patterns.unknown.subn(" ", remaining)
            is_said = is_said or count > 0
            untold += (match[0] for match in patterns.untold.finditer(remaining))
            remaining = patterns.untold.sub(" ", remaining)
        for patterns in map(denials, LANGUAGES):
            remaining = patterns.beside.sub(" ", remaining)
        more = " ".join(word for word in remaining.split() if word not in all_function_words())
        return is_said, content_of(more), content_of(" ".join(untold))


@lru_cache(maxsize=8192)
def _says_retracted(text: str, language: Language) -> bool:
    if _CJK["retracted"].search(text):
        return True
    patterns = withdrawals(language)
    return any(patterns.take_back(clause, denied=_denies(clause, language)) for clause in clauses_of(text))
