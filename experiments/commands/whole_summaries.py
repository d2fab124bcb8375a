"""Groups of commands whose help tells what each command does in a whole sentence, and that know what was misspelt."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from experiments.commands.earlier_names import note_renamed
from tracing.suggestions import did_you_mean

_LONGEST = 200


class WholeSummaries(click.Group):
    """A group that lists its commands with the whole first sentence of their help.

    `gone` has, by the name of a command that is no longer there, why, and what to use.
    """

    def __init__(self, *args: Any, gone: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._gone = gone or {}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands and their summaries, in the group's order."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(_LONGEST)) for name, command in commands if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names; an error says which one was probably meant, or what to use now."""
        name = args[0]
        if name in self._gone:
            ctx.fail(f"{name!r} is no longer part of memtune: {self._gone[name]}")
        # click suggests from the commands that are loaded, and ours are loaded when they are used.
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}{did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


class LazyCommands(WholeSummaries):
    """A group whose commands are imported from `package` when they are used.

    `places` are `module:function` by name, in the order of --help; `earlier_names` have the names by those of before.
    """

    def __init__(
        self,
        *args: Any,
        package: str,
        places: Mapping[str, str],
        earlier_names: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self._package, self._places, self._earlier_names = package, places, earlier_names or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The same, also by an earlier name, which is told."""
        name = self._earlier_names.get(args[0])
        if name is not None:
            note_renamed(args[0], name)
            args = [name, *args[1:]]
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._places:
            return None
        module, _, name = self._places[cmd_name].partition(":")
        command = getattr(importlib.import_module(f"{self._package}.{module}"), name)
        assert isinstance(command, click.Command)  # noqa: S101 (the places are ours)
        return command
