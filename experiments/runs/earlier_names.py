"""Names that keys, words and files had before, which still work in this version: each beside its name now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

WORDS: Mapping[str, str] = {"seed": "baseline"}
"""Values of options, sides of a run and contenders."""


def current_word(word: str) -> str:
    """The name now of a side or a contender."""
    return WORDS.get(word, word)


def first_folder(parent: Path, word: str) -> Path:
    """The folder of a side or a contender: by its name now, or by an earlier one if only that is there."""
    folders = [parent / word, *(parent / earlier for earlier, current in WORDS.items() if current == word)]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def by_current_words(value: Any) -> Any:
    """A mapping by side with the sides' names now; anything else as it is, for a validator to judge."""
    return {current_word(name): item for name, item in value.items()} if isinstance(value, dict) else value
