"""`memtune completion`: the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from experiments.commands.examples import examples
from experiments.commands.options import SuggestingChoice
from experiments.display.terminal import say

VARIABLE = "_MEMTUNE_COMPLETE"
"""Set by the script when it asks memtune for completions; click's name for a program called `memtune`."""


@click.command(epilog=examples("completion"))
@click.argument("shell", type=SuggestingChoice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script by which a shell completes memtune's commands and options."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 (click knows the three)
    say(kind(click.get_current_context().find_root().command, {}, "memtune", VARIABLE).source())
