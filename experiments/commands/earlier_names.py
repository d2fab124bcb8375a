"""Commands, options and words by the names that they had before: they work in this version, with a note."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import click

from experiments.display.terminal import say
from experiments.runs.earlier_names import SIDES


def note_renamed(earlier: str, name: str) -> None:
    """Tell that what was typed has another name now."""
    say(f"note: {earlier} is called {name} now; the old name still works in this version", err=True)


def noted_word(word: str, names: Mapping[str, str]) -> str:
    """The name now of a word that was typed; an earlier one is noted."""
    name = names.get(word, word)
    if name != word:
        note_renamed(word, name)
    return name


def current_side(_context: click.Context, _option: click.Parameter, side: str | None) -> str | None:
    """The callback of an option that names a side, among other things."""
    return None if side is None else noted_word(side, SIDES)


class RenamedOption(click.Option):
    """An option that is taken by its `earlier` name too, which no help shows."""

    def __init__(self, *args: Any, earlier: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._twin = copy.copy(self)
        self._twin.name, self._twin.opts = earlier, [earlier]

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Both names, each with a place of its own for its value."""
        super().add_to_parser(parser, ctx)
        click.Option.add_to_parser(self._twin, parser, ctx)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> Any:
        """The value by either name, but not by both."""
        earlier = self._twin.name
        if earlier in opts:
            if self.name in opts:
                raise click.UsageError(f"{earlier} is the earlier name of {self.opts[0]}; give one of them", ctx)
            note_renamed(str(earlier), self.opts[0])
            opts = {**opts, str(self.name): opts[earlier]}
        return super().consume_value(ctx, opts)
