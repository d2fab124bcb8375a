"""Set phrases: owning not to know, and taking back what was said."""

from __future__ import annotations

import re
from functools import lru_cache

from attribution.judge import normalise

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


@lru_cache(maxsize=8192)
def says_unknown(text: str) -> bool:
    """Whether a reply owns that it does not know."""
    return _UNKNOWN.search(" ".join(normalise(text)) or text) is not None


@lru_cache(maxsize=8192)
def says_retracted(text: str) -> bool:
    """Whether a text says that something no longer holds or is to be forgotten."""
    return _RETRACTED.search(text) is not None
