"""An option that takes one of a few words, and says which was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tracing.suggestions import did_you_mean

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice


class SuggestingChoice(_Choice):
    """click's, with a suggestion where the word is none of the choices."""

    def get_invalid_choice_message(self, value: str, ctx: click.Context | None) -> str:
        """Name the choices, and the nearest."""
        return f"{super().get_invalid_choice_message(value, ctx).rstrip('.')}{did_you_mean(value, self.choices)}"
