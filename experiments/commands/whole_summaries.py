"""Groups of commands whose help tells what each command does in a whole sentence, and that know what was misspelt."""

from __future__ import annotations

import click

from tracing.suggestions import did_you_mean

_LONGEST = 200


class WholeSummaries(click.Group):
    """A group that lists its commands with the whole first sentence of their help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands and their summaries, in the group's order."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(_LONGEST)) for name, command in commands if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names.

        Raises:
            UsageError: there is none; it names the one that was probably meant.
        """
        name = args[0]
        # click suggests from the commands that are loaded, and ours are loaded when they are used.
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}{did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)
