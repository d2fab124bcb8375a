"""Sorts of words that tell what may be asked of a text, by language: what is supposed, an example, a thing changed."""

from __future__ import annotations

import re
from functools import cache

from attribution.text.languages.language_data import LANGUAGES, joined
from attribution.text.languages.reading_language import language, tongue
from tracing.package_data import packaged_tables

_TABLES = packaged_tables("experiments", "data/generating/prompts.toml")


def has(sort: str, text: str) -> bool:
    """Whether a text has words of a sort, in the language that is read."""
    return pattern(sort, language()).search(text) is not None


def has_own(text: str) -> bool:
    """Whether a text has a word for who speaks; of a language in which these are not listed, any text may."""
    return has("own", text) or tongue() not in LANGUAGES


@cache
def pattern(sort: str, read: str) -> re.Pattern[str]:
    """The words of a sort in a language; nothing where they are not listed."""
    return re.compile(joined(_TABLES[sort].get(read, "(?!)")), re.IGNORECASE)
