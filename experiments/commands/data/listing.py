"""`memtune data list`: the data sets, their licences, and which of them are here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiments.commands.options import home_option

if TYPE_CHECKING:
    from experiments.data.cards import Card


@click.command(
    "list",
    epilog="""\b
Examples:
  memtune data list
  memtune data list --home shared-home
""",
)
@home_option
def list_(home: Path | None) -> None:
    """List the data sets: what they are, their licence, size and public home, and which are in the home's folder.

    memtune comes with `sample` and `agent-traces`, and with none of the others.
    """
    from rich.table import Table

    from experiments.data.datasets import DATASETS, card_of
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.terminal import one_line, say
    from experiments.running.wiring import home_path
    from tracing.errors import MemtuneError

    where = home_path(home) / "data"
    table = Table()
    for name in ("name", "licence", "size", "here"):
        table.add_column(name, overflow="fold")
    about: list[str] = []
    for name in DATASETS.names():
        try:
            card = card_of(name)
        except MemtuneError as error:
            table.add_row(name, "", "", "")
            about.append(f"{name}: {one_line(str(error))}")
            continue
        if card is None:
            table.add_row(name, "not stated", "", "")
            about.append(f"{name}: from another distribution")
            continue
        table.add_row(name, card.licence, card.size, _here(name, card, where / name))
        about.append(f"{name}: {card.what}{f', {card.home}' if card.home else ''}")
    LiteralConsole().print(table)
    for line in about:  # whole lines, which can be copied
        say(line)


def _here(name: str, card: Card, folder: Path) -> str:
    from experiments.data.file_download import is_here

    if card.takes == "nothing":
        return "yes"
    if not card.can_be_fetched:
        return "give its path with --data"
    have = [file for file in card.files if is_here(file, folder)]
    if have or (card.listing and folder.is_dir()):
        part = f"{len(have)} of {len(card.files)} files" if len(have) < len(card.files) else "yes"
        return part if card.files else "some files"
    return f"no: memtune data fetch {name}"
