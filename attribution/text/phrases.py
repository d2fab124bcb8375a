"""Set phrases: saying that something is unknown, denying it, and taking it back."""

from __future__ import annotations

import re
from functools import lru_cache

from attribution.text.tokens import normalise

_UNKNOWN = re.compile(
    r"\b(?:unknown|unanswerable|undecided|forgotten"
    r"|not? (?:longer )?(?:known|mentioned|specified|stated|given|provided|available|sure|decided)"
    r"|no (?:information|record|answer|memory|data)"
    r"|(?:do not|dont|cannot|cant) (?:know|say|tell|be answered|answer|determine)"
    r")\b|不知道|未知|没有提到|不明|分かりません|わかりません"
)
_RETRACTED = re.compile(
    r"\b(?:forg[eo]t\w*|eras\w+|delet\w+|scratch\w*|disregard\w*|ignor\w+|remov\w+|retract\w*|cancel\w*|withdr\w+"
    r"|strik\w+|str[ui]ck\w*|drop\w*|discard\w*|unsaid|take\w* back|took back|no longer|not anymore|off the record"
    r"|private|undecided|unknown|chang\w+ (?:his|her|their|my) mind)\b|忘|删除|取消|作废",
    re.IGNORECASE,
)


_DENIED = re.compile(
    r"\b(?:not|never|no longer|cannot|without|stopped|quit)\b|n['’]t\b|不|没|ない|ません", re.IGNORECASE
)
_AFFIRMED = re.compile(
    r"(?:can['’]?t|cannot|couldn['’]?t) (?:wait|help|stop|be|have|imagine|believe)|not only"
    r"|never been (?:more|so|happier|better)"
    r"|(?:n['’]t|not|never) \w+ (?:anything|anyone|anybody|nothing) but|不仅|不但",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[.!?;。！？；\n]+|,? but ")


@lru_cache(maxsize=8192)
def clauses_of(text: str) -> tuple[str, ...]:
    """The clauses of a text, split so that a denial in one does not affect the others."""
    return tuple(clause for clause in _CLAUSE.split(text) if clause.strip())


@lru_cache(maxsize=8192)
def denies(clause: str) -> bool:
    """Whether a clause says that something is not so; "can't wait" and similar phrases do not."""
    return _DENIED.search(_AFFIRMED.sub(" ", clause)) is not None


@lru_cache(maxsize=8192)
def says_unknown(text: str) -> bool:
    """Whether a reply says that it does not know."""
    return _UNKNOWN.search(" ".join(normalise(text)) or text) is not None


@lru_cache(maxsize=8192)
def says_retracted(text: str) -> bool:
    """Whether a text says that something no longer holds or is to be forgotten."""
    return _RETRACTED.search(text) is not None
