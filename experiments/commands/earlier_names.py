"""Commands, options and words by the names that they had before: they work in this version, with a note."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click

from experiments.display.terminal import say


def note_renamed(earlier: str, name: str) -> None:
    """Tell that what was typed has another name now."""
    say(f"note: {earlier} is called {name} now; the old name still works in this version", err=True)


def noted_word(word: str, *, among: Collection[str] | None = None) -> str:
    """The name now of a word that was typed, if it is `among` those allowed; an earlier one is noted."""
    from experiments.runs.earlier_names import current_word

    name = current_word(word)
    if name == word or (among is not None and name not in among):
        return word
    note_renamed(word, name)
    return name


def current_words(_context: click.Context, _option: click.Parameter, value: Any) -> Any:
    """The callback of an option whose words may be earlier ones: `noted_word` of each."""
    if isinstance(value, tuple):
        return tuple(map(noted_word, value))
    return value if value is None else noted_word(value)
