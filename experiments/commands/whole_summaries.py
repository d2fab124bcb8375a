"""Groups of commands whose help tells what each command does in a whole sentence, where click would cut it off."""

from __future__ import annotations

import click

_LONGEST = 200


class WholeSummaries(click.Group):
    """A group that lists its commands with the whole first sentence of their help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands and their summaries, in the group's order."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(_LONGEST)) for name, command in commands if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
