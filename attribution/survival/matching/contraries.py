"""Whether a text says the contrary of a statement: opposites, another of several kinds, or a denial of it.

It knows the terms of `contrary_terms` only, and denials.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Literal

from attribution.survival.matching.contrary_terms import CHOICES
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
    return tuple(tuple(map(_side, choice.split("|"))) for choice in CHOICES.strip().split("\n\n"))


def _side(terms: str) -> re.Pattern[str]:
    return re.compile(f" (?:{'|'.join(map(_pattern, terms.split()))}) ")


def _pattern(term: str) -> str:
    # A star alone stands for a word or two between the parts of a phrase.
    return term.casefold().replace("_*_", " (?:\\S+ ){0,2}?").replace("_", " ").replace("*", "\\w*")
