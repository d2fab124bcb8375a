"""`memtune init`: files to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.examples import examples
from experiments.display.terminal import say


@click.command(epilog=examples("init"))
@click.argument("folder", type=click.Path(path_type=Path), default=".")
def init(folder: Path) -> None:
    """Write a configuration and a memory system to begin with.

    They go into FOLDER, by default this one. The configuration has every key with its meaning. The memory system
    works as it is; replace what it does by calls of your own.
    """
    from experiments.starter.starter_files import CONFIG, write_starter

    for path in write_starter(folder):
        say(str(path))
    say(f"next, in {folder}: memtune doctor {CONFIG}, memtune run {CONFIG} --smoke, then without --smoke;")
    say("and then: memtune export latest --to text --out tuned")
