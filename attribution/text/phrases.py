"""Set phrases: that something is unknown, not so or taken back, to remember it, frames of an answer, and lists."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from attribution.text.content import content_of
from attribution.text.languages.language_data import (
    LANGUAGES,
    Language,
    Tongue,
    all_function_words,
    compiled_of_language,
    patterns_of_language,
    tongue_data,
)
from attribution.text.languages.reading_language import cached_in_language, language, tongue
from attribution.text.tokens import normalise, words
from tracing.systems.conversations import Question

_BEGINS = r"(?:(?<=^)|(?<=[.!?;:,(\n¿¡–—-])|(?<=[.!?;:,(\n¿¡–—-]\s))"
"""The beginning of a clause: elsewhere `remember` and `note` tell what somebody does."""
_CJK, _PATTERNS = compiled_of_language("common", "cjk"), compiled_of_language("common", "phrases")


@lru_cache(maxsize=8192)
def clauses_of(text: str) -> tuple[str, ...]:
    """The clauses of a text, split so that a denial in one does not affect the others."""
    return tuple(clause for clause in _PATTERNS["clause_end"].split(text) if clause.strip())


@cached_in_language()
def denies(clause: str) -> bool:
    """Whether a clause says that something is not so; "can't wait" and similar phrases do not."""
    patterns = compiled_of_language(language(), "denials")
    remaining = _CJK["affirmed"].sub(" ", patterns["affirmed"].sub(" ", clause))
    denials = (patterns["denied"], _CJK["denied"], _denied(tongue()))
    return any(pattern is not None and pattern.search(remaining) for pattern in denials)


@cache
def _denied(tongue: Tongue) -> re.Pattern[str] | None:
    """What denies in a language of which only words are read."""
    denied = tongue_data(tongue).get("denied")
    return re.compile(denied, re.IGNORECASE) if denied is not None else None


@cached_in_language()
def says_unknown(text: str) -> bool:
    """Whether a reply says that it does not know."""
    plain = " ".join(normalise(_PATTERNS["abbreviated"].sub(" unknown ", text))) or text
    # A reply may be in English though the conversation is not.
    patterns = [compiled_of_language(reply_language, "denials")["unknown"] for reply_language in {language(), "en"}]
    return any(pattern.search(plain) for pattern in patterns) or _CJK["unknown"].search(text) is not None


def is_unknown(answer: str, question: str) -> bool:
    """Whether an answer says that it is not known, and nothing more than the question says.

    A title or a name may hold such a phrase: The Forgotten Garden, the Tomb of the Unknown Soldier.
    """
    question_words = content_of(question.casefold())
    is_said, beside, untold = _beside_unknown(answer)
    tells = is_said or (bool(untold) and untold.isdisjoint(question_words) and not _PATTERNS["decides"].match(answer))
    return tells and beside <= question_words


def is_unknowable(question: Question) -> bool:
    """Whether the right answer is that there is none."""
    return question.unanswerable or all(is_unknown(answer, question.question) for answer in question.answers)


@cached_in_language()
def says_retracted(text: str) -> bool:
    """Whether a text says that something no longer holds, or that what was said is to be forgotten or kept private."""
    return _CJK["retracted"].search(text) is not None or any(map(_takes_back, clauses_of(text)))


@cached_in_language()
def without_courtesies(text: str) -> str:
    """A text without requests to remember it, thanks and greetings: a text of these alone stays."""
    remaining = _CJK["courtesies"].sub(" ", courtesies(language()).sub(" ", text.replace("’", "'")))
    return remaining if content_of(remaining) else text


@cached_in_language()
def _beside_unknown(text: str) -> tuple[bool, frozenset[str], frozenset[str]]:
    """Whether a text says that something is not known, what else it says, and the content of what may say so.

    Annotators have a phrase for it, whatever the language of the conversation.
    """
    marked = _CJK["unknown"].sub(" unknown ", _PATTERNS["abbreviated"].sub(" unknown ", text))
    remaining = " ".join(words(marked if marked == text else _CJK["beside_unknown"].sub(" ", marked)))
    is_said, untold = False, list[str]()
    denials = [compiled_of_language(language, "denials") for language in LANGUAGES]
    for patterns in denials:
        remaining, count = patterns["unknown"].subn(" ", remaining)
        is_said = is_said or count > 0
        untold += (match[0] for match in patterns["untold"].finditer(remaining))
        remaining = patterns["untold"].sub(" ", remaining)
    for patterns in denials:
        remaining = patterns["beside"].sub(" ", remaining)
    more = " ".join(word for word in remaining.split() if word not in all_function_words())
    return is_said, content_of(more), content_of(" ".join(untold))


def _takes_back(clause: str) -> bool:
    """Whether a clause takes something back. What it denies (don't forget my address!) is not taken back."""
    patterns = withdrawals(language())

    def has(*keys: str) -> bool:
        return all(patterns[key].search(clause) for key in keys)

    removed = has("order", "statement") or has("removal", "facts")
    kept_hidden = has("keeping", "hidden") or has("facts", "hidden")
    return has("ended") or (not denies(clause) and (removed or kept_hidden))


@cache
def withdrawals(language: Language) -> dict[str, re.Pattern[str]]:
    """How a language takes something back: what no longer holds, and orders to forget what was said."""
    table = patterns_of_language(language, "withdrawals")
    order = rf"(?:^\W*|[,:]\s*|\b(?:{table['request']}),?\s+)(?:{table['order']})\b"
    patterns = {key: rf"\b(?:{table[key]})\b" for key in ("ended", "removal", "facts", "keeping")}
    patterns |= {"order": order, "removal": f"{patterns['removal']}|{order}"}
    patterns |= {key: rf"\b(?:{table[key]})" for key in ("statement", "hidden")}
    return {key: re.compile(pattern, re.I) for key, pattern in patterns.items()}


@cache
def courtesies(language: Language) -> re.Pattern[str]:
    """What asks to remember what is said, and what is said for courtesy: nothing that must be kept."""
    table = patterns_of_language(language, "courtesies")
    objects, ends = rf"(?:\s+(?:{table['that']})\b)", rf"(?:,?\s+(?:{table['ends']})(?!\w))*"
    requested = rf"(?:{table['remember']})(?!\w){objects}*{ends}|(?:{table['keep']})(?!\w){objects}+{ends}"
    # A verb is a request where a clause begins, or after words of request wherever they stand.
    orders = rf"(?:{_BEGINS}|\b(?:(?:{table['request']}),?\s+)+)(?:{requested})"
    return re.compile(rf"{orders}|(?<!\w)(?:{table['asides']})(?!\w)", re.IGNORECASE)


@cache
def frames(language: Language) -> re.Pattern[str]:
    """What people put before and after an answer without saying more: that they think so, where they have it from."""
    table = patterns_of_language(language, "frames")
    before = rf"^\W*(?:(?:{table['begin']})\b[\s,:]*)+(?=\w)"
    return re.compile(rf"{before}|[\s,(–—-]+(?:{table['end']})\)?[\s.!]*$", re.IGNORECASE)


@cache
def list_patterns(language: Language) -> dict[str, re.Pattern[str]]:
    """What stands between the items of a list, how a clause begins that is none, and how a speaker shows something."""
    table = patterns_of_language(language, "lists")
    comma, conjunction = patterns_of_language("common", "parts")["comma"], table["conjunction"]
    patterns = {
        "between": rf"(?:{comma}|;)\s*(?:(?:{conjunction})\b)?|\s(?:{conjunction}|&)\s",
        "clause": rf"(?:{table['clause']})\b",
        "pointing": rf"\b(?:{table['pointing']})\b|这|看|これ|写真",
    }
    return {key: re.compile(pattern, re.I) for key, pattern in patterns.items()}
