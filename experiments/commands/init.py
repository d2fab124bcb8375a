"""`memtune init`: files to begin with."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

from experiments.commands.examples import examples
from experiments.display.terminal import say


@click.command(epilog=examples("init"))
@click.argument("folder", type=click.Path(path_type=Path), default=".")
@click.option(
    "--wrap",
    metavar="MODULE[:NAME]",
    help="An existing program with a memory, a class (MODULE:CLASS) or functions (MODULE, MODULE:READS,ANSWERS): write "
    "what makes a memory system of it, with nothing of it changed.",
)
@click.option(
    "--mem0",
    "own",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The configuration of your Mem0, JSON or YAML: write a configuration that tunes it, and say what stays.",
)
def init(folder: Path, wrap: str | None, own: Path | None) -> None:
    """Write a configuration and a memory system to begin with.

    They go into FOLDER, by default this one. The configuration has every key with its meaning. The memory system
    works as it is; replace what it does by calls of your own.
    """
    from experiments.starter.starter_files import CONFIG, write_starter

    if wrap is not None and own is not None:
        raise click.UsageError("--wrap and --mem0 write the same file; give one of them")
    if wrap is not None:
        _wrap(wrap, folder)
        return
    if own is not None:
        from experiments.starter.own_mem0 import write_for_mem0

        (config,), facts = write_for_mem0(own, folder)
        say(str(config))
        for fact in facts:
            say(fact)
        say(f"next, in {folder}: memtune doctor {CONFIG}, and name your models there")
        return
    for path in write_starter(folder):
        say(str(path))
    say(f"next, in {folder}: memtune doctor {CONFIG}, memtune run {CONFIG} --smoke, then without --smoke;")
    say("and then: memtune export latest --to text --out tuned")


def _wrap(name: str, folder: Path) -> None:
    """Write what wraps a program, say what was guessed, and check it."""
    from experiments.starter.starter_files import CONFIG
    from experiments.starter.wrapping import problems_of, write_wrapping

    # Before the current folder, where another wrapper of this name may lie.
    sys.path.insert(0, str(folder.resolve()))
    wrapping = write_wrapping(name, folder)
    importlib.invalidate_caches()  # it may be a new folder
    for path in wrapping.files:
        say(str(path))
    for guess in wrapping.guesses:
        say(f"guessed: {guess}")
    for gap in wrapping.unknown:
        say(f"not known: {gap}")
    problems = problems_of(f"{wrapping.files[-1].stem}:system") if wrapping.can_run else []
    for problem in problems:
        say(f"to mend: {problem}")
    if wrapping.can_run and not problems:
        say("the conformance suite finds nothing to mend")
    say(f"confirm what was guessed in {wrapping.files[-1]}; next: memtune doctor {folder / CONFIG}")
