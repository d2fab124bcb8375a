"""Whether a text says the contrary of a statement: an opposite, another of several kinds, a denial, or exchanged roles.

Opposites are the terms of `contrary_terms.txt` only. Of two names the first is taken for the one who acts, unless the
sentence is passive, or names the giver after `from`. That holds for most sentences of English, German, Spanish and
French that name both, and says nothing about the others: pronouns, and two people who do something together.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Literal

from attribution.text.calendar_names import MONTHS, WEEKDAYS
from attribution.text.languages.language_data import compiled_of_language, words_of_language
from attribution.text.phrases import denies
from tracing.package_data import packaged_text

_PATTERNS = compiled_of_language("common", "contradictions")
_JOINED, _BY, _AUXILIARY = (_PATTERNS[key].pattern for key in ("joined", "by", "auxiliary"))
_COMMON = frozenset((*words_of_language("common", "common_words"), *map(str.casefold, (*MONTHS, *WEEKDAYS))))
"""Words that begin sentences with a capital more often than they name somebody."""
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


Contrary = Literal["opposed", "denied"]

_MOST_NAMES = 4
_NAME = re.compile(r"\b[^\W\d_]\w+\b")


def contrary(statement: str, text: str) -> Contrary | None:
    """How a text that is on the subject of a statement contradicts it; None if it does not.

    Opposites under a denial are the same again: `never won` does not contradict `lost`.

    Returns:
        "opposed": it names the opposite. "denied": only one of them has a denial, which a paraphrase may have too.
    """
    mine, theirs, same = _plain(statement), _plain(text), False
    for choice in _choices():
        my_sides, their_sides = (
            frozenset(at for at, side in enumerate(choice) if side.search(side_text)) for side_text in (mine, theirs)
        )
        if not my_sides or not their_sides:
            continue
        if my_sides & their_sides:
            same = same or my_sides == their_sides
            continue
        # The terms may hold a denial of their own: `can't stand`.
        rest = [_without(choice, my_sides, mine), _without(choice, their_sides, theirs)]
        denied = _denied(rest[0]) != _denied(rest[1])
        return None if denied and len(choice) == 2 else "opposed"
    if _denied(mine) == _denied(theirs):
        return None
    return "opposed" if same else "denied"


def unreal(statement: str, text: str) -> bool:
    """Whether a text speaks of a plan, a wish or a former time where the statement does not."""
    return _PATTERNS["unreal"].search(text) is not None and _PATTERNS["unreal"].search(statement) is None


def of_another(statement: str, text: str) -> bool:
    """Whether a text is about somebody related to the person that the statement is about: Ana's brother, not Ana."""
    named = _PATTERNS["of_name"].search(text)
    if named is None:
        return False
    relations = _choices()[-1]
    mine = _plain(statement)
    subject = _plain(text[: named.end()])
    return any(side.search(subject) for side in relations) and not any(side.search(mine) for side in relations)


def _without(choice: tuple[re.Pattern[str], ...], sides: frozenset[int], text: str) -> str:
    for at in sides:
        text = choice[at].sub(" ", text)
    return text


def _denied(text: str) -> bool:
    return denies(text) or _PATTERNS["denied"].search(_PATTERNS["not_denied"].sub(" ", text)) is not None


@lru_cache(maxsize=8192)
def _plain(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold().replace('’', chr(39))))} "


@cache
def _choices() -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The sides of each choice, of `contrary_terms.txt`: a paragraph for each, with bars between its sides.

    A star stands for any ending, an underscore for a space, and a star between underscores for up to two words.
    """
    text = packaged_text("benchmarks.matching", "contrary_terms.txt")
    return tuple(tuple(map(_side, choice.split("|"))) for choice in text.strip().split("\n\n"))


def _side(terms: str) -> re.Pattern[str]:
    return re.compile(f" (?:{'|'.join(map(_pattern, terms.split()))}) ")


def _pattern(term: str) -> str:
    # A star alone stands for a word or two between the parts of a phrase.
    return term.casefold().replace("_*_", " (?:\\S+ ){0,2}?").replace("_", " ").replace("*", "\\w*")


def swapped(question: str, answer: str, text: str) -> bool | None:
    """Whether a text gives two people the parts that they have in question and answer, exchanged.

    None if it does not name two people of the statement, or what they do they do together. German writes all nouns like
    names: they take part in the comparison, and their places do not differ.
    """
    if _PATTERNS["list"].search(answer):
        # It may come in any order.
        return None
    theirs = _names(text)
    shared = [shared_name for name in _parts(question, answer) if (shared_name := _same_name(name, theirs)) is not None]
    if not 2 <= len(shared) <= _MOST_NAMES or _PATTERNS["together"].search(text) or _are_joined(text, shared):
        return None
    moved = sum(
        stated_name != text_name for stated_name, text_name in zip(shared, _in_order(text, shared), strict=True)
    )
    # More than two places differ where a language lets words change places without changing parts.
    return {0: False, 2: True}.get(moved)


def _parts(question: str, answer: str) -> list[str]:
    """The names of a statement, the one who acts first."""
    answered = _names(answer)
    question_names = _in_order(question, _names(question))
    named = [name for name in question_names if _same_name(name, answered) is None]
    if not answered or not named:
        return question_names or answered
    if len(question_names) > len(named):
        # Which of two: the answer says who it is.
        return [*answered, *named]
    if _PATTERNS["asked_from"].search(question):
        return [*answered, *named]
    if re.search(rf"\b{_BY}{re.escape(named[0])}\b", question, re.IGNORECASE):
        return [*named, *answered]
    # `Who did Ana visit?`, but not `Who is Ana's boss?`
    subject = rf"\W*(?:who|qui)\s+(?:(?:{_AUXILIARY})\s+)?{re.escape(named[0])}\b(?!['’]s)"
    whom = _PATTERNS["whom"].match(question) or re.match(subject, question, re.IGNORECASE)
    who = _PATTERNS["who"].match(question)
    return [*answered, *named] if who and not whom else [*named, *answered]


def _in_order(text: str, names: list[str]) -> list[str]:
    """Some names in a text, the one who acts first."""
    placed = sorted(names, key=lambda name: _place_of(text, name))
    if len(placed) != 2:
        return placed
    first, second = placed
    behind = text[: _place_of(text, second)]
    passive = re.search(rf"\b{_BY}$", behind, re.IGNORECASE) is not None
    # Spanish marks the object: `a Ana la vio Luis`.
    marked = _PATTERNS["object_first"].search(text[: _place_of(text, first)]) is not None and "?" not in text
    return [second, first] if passive or marked else [first, second]


def _place_of(text: str, name: str) -> int:
    match = re.search(rf"\b{re.escape(name)}(?:['’]?s)?\b", text)
    return match.start() if match else len(text)


def _are_joined(text: str, names: list[str]) -> bool:
    first, second = map(re.escape, names[:2])
    return re.search(rf"\b(?:{first}{_JOINED}{second}|{second}{_JOINED}{first})\b", text) is not None


def _same_name(name: str, names: list[str]) -> str | None:
    """The one of some names that is this one, in the genitive or not."""
    return next(
        (candidate for candidate in names if name in (candidate, f"{candidate}s") or candidate == f"{name}s"), None
    )


def _names(text: str) -> list[str]:
    """The words that look like names: capital, without an article, and not only as the first of a sentence."""
    names: dict[str, None] = {}
    for word in _NAME.finditer(text):
        name = word[0]
        if not name[0].isupper() or _PATTERNS["determined"].search(text[: word.start()]) or name.casefold() in _COMMON:
            continue
        same_name = _same_name(name, list(names))
        names[name if same_name is None else same_name] = None
    return list(names)
