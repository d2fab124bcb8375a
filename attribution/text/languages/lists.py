"""The small words by which each language lists things, begins a clause, and points at a picture."""

from __future__ import annotations

import re
from dataclasses import dataclass

from attribution.text.languages.function_words import Language

SEPARATING_COMMA = r"(?:(?<!\d),|,(?!\d))"
"""Pattern of a comma between items, which is none within a number."""


@dataclass(frozen=True, slots=True)
class SmallWords:
    """Patterns of one language.

    Attributes:
        between: what stands between the items of a list.
        clause: how a clause begins that is no item of a list.
        pointing: words with which a speaker shows something.
    """

    between: re.Pattern[str]
    clause: re.Pattern[str]
    pointing: re.Pattern[str]


def _small_words(conjunction: str, clause: str, pointing: str) -> SmallWords:
    return SmallWords(
        re.compile(rf"(?:{SEPARATING_COMMA}|;)\s*(?:(?:{conjunction})\b)?|\s(?:{conjunction}|&)\s", re.I),
        re.compile(rf"(?:{clause})\b", re.I),
        re.compile(rf"\b(?:{pointing})\b|这|看|これ|写真", re.I),
    )


SMALL_WORDS: dict[Language, SmallWords] = {
    "en": _small_words(
        "and|or",
        "i|you|he|she|it|we|they|his|her|their|its|to|by|because|since|that|when",
        r"this|these|here(?:'s| is| are)|look|check \w+ out|check out|pic\w*|photo\w*|image|see",
    ),
    "de": _small_words(
        "und|oder",
        "ich|du|er|sie|es|wir|ihr|sein|ihre|seine|um|weil|seit|dass|wenn|als|damit|zu",
        r"dies\w*|hier|schau\w*|sieh\w*|guck\w*|foto\w*|bild\w*",
    ),
    "es": _small_words(
        "y|e|o|u",
        "yo|tú|él|ella|nosotros|ellos|ellas|su|sus|para|por|porque|desde|que|cuando|si",
        r"est[aeo]s?|aquí|mira\w*|foto\w*|imagen|imágenes",
    ),
    "fr": _small_words(
        "et|ou",
        "je|j['’]|tu|il|elle|on|nous|vous|ils|elles|son|sa|ses|leur|pour|par|parce|depuis|que|quand|si",
        r"ce(?:ci|tte|s|t)?|voici|regarde\w*|photo\w*|image\w*",
    ),
}
