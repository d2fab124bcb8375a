"""The small words by which each language lists things, begins a clause, and points at a picture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from attribution.text.languages.language_data import Language, patterns_of_language

SEPARATING_COMMA = r"(?:(?<!\d),|,(?!\d))"
"""Pattern of a comma between items, which is none within a number."""


@dataclass(frozen=True, slots=True)
class ListPatterns:
    """Patterns of one language.

    Attributes:
        between: what stands between the items of a list.
        clause: how a clause begins that is no item of a list.
        pointing: words with which a speaker shows something.
    """

    between: re.Pattern[str]
    clause: re.Pattern[str]
    pointing: re.Pattern[str]


@cache
def list_patterns(language: Language) -> ListPatterns:
    """The patterns of a language, from its conjunctions and its words that begin a clause or point."""
    patterns = patterns_of_language(language, "lists")
    conjunction = patterns["conjunction"]
    return ListPatterns(
        re.compile(rf"(?:{SEPARATING_COMMA}|;)\s*(?:(?:{conjunction})\b)?|\s(?:{conjunction}|&)\s", re.I),
        re.compile(rf"(?:{patterns['clause']})\b", re.I),
        re.compile(rf"\b(?:{patterns['pointing']})\b|这|看|これ|写真", re.I),
    )
