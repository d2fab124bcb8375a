"""Whether a text says the contrary of a statement: an opposite, another of several kinds, a denial, or exchanged roles.

Opposites are the terms of `contrary_terms.txt` only. Of two names the first is taken for the one who acts, unless the
sentence is passive, or names the giver after `from`. That holds for most sentences of English, German, Spanish and
French that name both, and says nothing about the others: pronouns, and two people who do something together.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

from attribution.text.calendar_names import MONTHS, WEEKDAYS
from attribution.text.phrases import denies

_TWO = 2
# At the beginning of a sentence: `Ana's brother`, `Der Bruder von Ana`, `La hermana de Ana`.
_OF_NAME = re.compile(
    r"(?:^|[.!?]\s+)(?:[A-ZÀ-Þ]\w+?(?:['’]s|s)\s+\w+|(?:The|Der|Die|La|El|Le|L['’])\s*\w+\s+(?:of|von|de|d['’])\s*[A-ZÀ-Þ]\w+)"
)
_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_DENIED = re.compile(
    r"\b(?:nicht|kein\w*|nie|niemals|niemand|weder|no|nunca|jamás|tampoco|sin|pas|rien|personne|jamais|aucun\w*|sans|nobody|none"
    r"|neither|nor|hardly|kaum|apenas|guère|failed to|refused to|weiger\w*|se negó|refus\w+ d[e'])\b",
    re.IGNORECASE,
)
_NOT_A_DENIAL = re.compile(r"\bno sólo\b|\bnon seulement\b|\bnicht nur\b", re.IGNORECASE)
_UNREAL = re.compile(
    r"\b(?:plan(?:s|ned|ning)?|hopes? to|hoped to|wants? to|would like to|would love to|dreams? of"
    r"|intends? to|considers?|considering|thinking (?:of|about)|used to|formerly|almost|nearly|instead of|wishes"
    r"|plant|möchte|will einmal|hofft|träumt|früher|beinahe|fast|statt|anstatt|ehemalig\w*"
    r"|planea|quiere|quisiera|espera|sueña con|antes|solía|casi|en vez de|en lugar de"
    r"|veut|voudrait|espère|rêve de|compte|autrefois|presque|failli|au lieu)\b",
    re.IGNORECASE,
)


Contrary = Literal["opposed", "denied"]

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
        return None if denied and len(choice) == _TWO else "opposed"
    if _denied(mine) == _denied(theirs):
        return None
    return "opposed" if same else "denied"


def unreal(statement: str, text: str) -> bool:
    """Whether a text speaks of a plan, a wish or a former time where the statement does not."""
    return _UNREAL.search(text) is not None and _UNREAL.search(statement) is None


def of_another(statement: str, text: str) -> bool:
    """Whether a text is about somebody related to the person that the statement is about: Ana's brother, not Ana."""
    named = _OF_NAME.search(text)
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
    return denies(text) or _DENIED.search(_NOT_A_DENIAL.sub(" ", text)) is not None


@lru_cache(maxsize=8192)
def _plain(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold().replace('’', chr(39))))} "


@cache
def _choices() -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The sides of each choice, of `contrary_terms.txt`: a paragraph for each, with bars between its sides.

    A star stands for any ending, an underscore for a space, and a star between underscores for up to two words.
    """
    text = (files("attribution.survival.matching") / "contrary_terms.txt").read_text(encoding="utf-8")
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
    placed = sorted(names, key=lambda name: _place_of(text, name))
    if len(placed) != 2:
        return placed
    first, second = placed
    behind = text[: _place_of(text, second)]
    passive = re.search(rf"\b{_BY}$", behind, re.IGNORECASE) is not None
    # Spanish marks the object: `a Ana la vio Luis`.
    marked = _OBJECT_FIRST.search(text[: _place_of(text, first)]) is not None and "?" not in text
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
        if not name[0].isupper() or _DETERMINED.search(text[: word.start()]) or _is_common(name):
            continue
        same_name = _same_name(name, list(names))
        names[name if same_name is None else same_name] = None
    return list(names)


def _is_common(word: str) -> bool:
    """Whether a capital word begins sentences more often than it names somebody."""
    return word.casefold() in _COMMON
