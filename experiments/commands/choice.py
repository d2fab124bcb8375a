"""An option that takes one of a few words, also an earlier name of one, and says which was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from experiments.commands.earlier_names import noted_word
from experiments.runs.earlier_names import SIDES
from tracing.suggestions import did_you_mean

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice


class SuggestingChoice(_Choice):
    """click's, with a suggestion where the word is none of the choices."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The choice, also by an earlier name, which is noted."""
        return super().convert(noted_word(value, SIDES) if SIDES.get(value) in self.choices else value, param, ctx)

    def get_invalid_choice_message(self, value: str, ctx: click.Context | None) -> str:
        """Name the choices, and the nearest."""
        return f"{super().get_invalid_choice_message(value, ctx).rstrip('.')}{did_you_mean(value, self.choices)}"
