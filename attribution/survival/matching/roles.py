"""Who does what to whom: whether a text gives two people of a statement each other's part.

The first of two names is taken for the one who acts, unless the sentence is passive, or names the giver after
`from`. That holds for most sentences of English, German, Spanish and French that name both, and says nothing about
the others: pronouns, and two people who do something together.
"""

from __future__ import annotations

import re

from attribution.text.calendar_names import MONTHS, WEEKDAYS

_MOST_NAMES = 4
_NAME = re.compile(r"\b[^\W\d_]\w+\b")
_DETERMINED = re.compile(
    r"\b(?:an|the|many|viele|\d+|my|your|his|her|its|our|their|this|that|some|every|no|der|die|das|den|dem|des|eine?[nmrs]?|kein\w*"
    r"|mein\w*|sein\w*|ihr\w*|im|am|zum|zur|vom|ins|el|la|los|las|una?|su|sus|mi|al|del|les?|une|des|du|son|sa|ses|mon"
    r"|ma|l['’])\s*$",
    re.IGNORECASE,
)
_TOGETHER = re.compile(
    r"\b(?:met|meets?|marr\w+|divorc\w+|dat(?:es|ed|ing)|each other|friends?|cousins?|siblings?|twins?|trifft|traf\w*"
    r"|heirat\w*|befreundet|freund\w*|cas\w+ con|amig\w+|juntos|épous\w+|mari\w+ avec|rencontr\w+|ensemble|ami\w*)\b",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\w+(?:,\s*(?:\w+\s+)?\w+)*,?\s+(?:and|und|y|e|et|or|oder|o|u|ou)\s+(?:\w+\s+)?\w+\W*$|\w+,\s*\w+,\s*\w+",
    re.IGNORECASE,
)
_JOINED = r"\W+(?:and|und|y|e|et|&)\W+"
_BY = r"(?:by|from|von|vom|por|par)\s+(?:der\s+|dem\s+)?"
_WHO = re.compile(r"\W*(?:who|wer|quién|quien|quiénes|qui)\b", re.IGNORECASE)
_WHOM = re.compile(
    r"\W*(?:whom|(?:to|for|with|from|by|about) whom?|whose|wen|wem|wessen|(?:von|mit|für|an|bei) we[mn]"
    r"|(?:a|de|con|para|por) quién(?:es)?|(?:à|de|avec|pour|par|chez) qui)\b",
    re.IGNORECASE,
)
_ASKED_FROM = re.compile(r"\b(?:from|by)\W*$|^\W*(?:from whom?|by whom?|von wem|por quién|par qui)\b", re.IGNORECASE)
_AUXILIARY = "did|does|do|has|have|had|will|would|is|was|should|can"
_OBJECT_FIRST = re.compile(r"\W*(?:a|al)\s+$", re.IGNORECASE)


def swapped(question: str, answer: str, text: str) -> bool | None:
    """Whether a text gives two people the parts that they have in question and answer, exchanged.

    None if it does not name two people of the statement, or what they do they do together. German writes all nouns like
    names: they take part in the comparison, and their places do not differ.
    """
    if _LIST.search(answer):
        # It may come in any order.
        return None
    theirs = _names(text)
    shared = [shared_name for name in _parts(question, answer) if (shared_name := _same_name(name, theirs)) is not None]
    if not 2 <= len(shared) <= _MOST_NAMES or _TOGETHER.search(text) or _are_joined(text, shared):
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
    if _ASKED_FROM.search(question):
        return [*answered, *named]
    if re.search(rf"\b{_BY}{re.escape(named[0])}\b", question, re.IGNORECASE):
        return [*named, *answered]
    # `Who did Ana visit?`, but not `Who is Ana's boss?`
    subject = rf"\W*(?:who|qui)\s+(?:(?:{_AUXILIARY})\s+)?{re.escape(named[0])}\b(?!['’]s)"
    whom = _WHOM.match(question) or re.match(subject, question, re.IGNORECASE)
    who = _WHO.match(question)
    return [*answered, *named] if who and not whom else [*named, *answered]


def _in_order(text: str, names: list[str]) -> list[str]:
    """Some names in a text, the one who acts first."""
    placed = sorted(names, key=lambda name: _place(text, name))
    if len(placed) != 2:
        return placed
    first, second = placed
    behind = text[: _place(text, second)]
    passive = re.search(rf"\b{_BY}$", behind, re.IGNORECASE) is not None
    # Spanish marks the object: `a Ana la vio Luis`.
    marked = _OBJECT_FIRST.search(text[: _place(text, first)]) is not None and "?" not in text
    return [second, first] if passive or marked else [first, second]


def _place(text: str, name: str) -> int:
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
        if not name[0].isupper() or _DETERMINED.search(text[: word.start()]) or _is_common(name):
            continue
        same_name = _same_name(name, list(names))
        names[name if same_name is None else same_name] = None
    return list(names)


def _is_common(word: str) -> bool:
    """Whether a capital word begins sentences more often than it names somebody."""
    return word.casefold() in _COMMON


_COMMON_WORDS = """
    who whom whose what when where why how which is are was were do does did has have had can could will would should
    the a an in on at by from to for with of he she it they we you i his her their my your our this that these yes no
    and but so if then since because after before both wer wen wem wessen was wann wo warum wie welche welcher welches
    ist sind war waren hat haben hatte er sie es wir ihr ihre ihren sein seine seinen ein eine einen einer der die das
    dem den in im am an auf bei mit nach von vom zu zum für und aber weil ja nein quién quien quiénes qué cuándo dónde
    por cómo cuál cuántos cuántas es son fue era ha han él ella ellos su sus un una el la los las en de del al con para
    le se lo y pero sí no qui que quoi quand où pourquoi comment quel quelle combien est sont était a ont il elle ils
    elles son sa ses un une le les des du dans à au avec pour par chez et mais oui non qu ce cette quels quelles
"""
_COMMON = frozenset((*_COMMON_WORDS.split(), *(name.casefold() for name in (*MONTHS, *WEEKDAYS))))
