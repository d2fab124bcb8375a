"""`memtune data list` and `memtune data fetch`: the data sets, which are here, and fetching the others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiments.commands.examples import examples
from experiments.commands.options import home_option
from experiments.commands.output import download_bars
from experiments.display.terminal import one_line, say
from tracing.errors import ConfigError, DataError, MemtuneError

if TYPE_CHECKING:
    from experiments.data.datasets import Card

_MOST = 12


@click.command("list", epilog=examples("data list"))
@home_option
def list_(home: Path | None) -> None:
    """List the data sets: what they are, their licence, size and public home, and which are in the home's folder.

    memtune comes with `sample` and `agent-traces`, and with none of the others.
    """
    from experiments.data.datasets import DATASETS, card_of
    from experiments.display.literal_console import LiteralConsole, styled
    from experiments.display.tables import plain_table
    from experiments.running.parts import home_path

    where = home_path(home) / "data"
    table = plain_table(gap=2)
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
        here = _here(name, card, where / name)
        table.add_row(name, card.licence, card.size, styled((here, "green" if here == "yes" else "dim")))
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


@click.command(epilog=examples("data fetch"))
@click.argument("name")
@click.argument("files", nargs=-1, metavar="[FILE...]")
@home_option
def fetch(name: str, files: tuple[str, ...], home: Path | None) -> None:
    """Fetch the data set NAME, or only some of its files, from its public home.

    A file is verified by its SHA-256. Where memtune does not know it, the first fetch records it in SHA256SUMS, and
    later ones must bring the same bytes. A download that stopped is continued. Mind the licence that is printed.
    """
    from experiments.data.datasets import DATASETS, card_of, files_of, way_out
    from experiments.data.file_download import fetch as fetch_file
    from experiments.running.parts import home_folder

    DATASETS.check(name)
    card = card_of(name)
    if card is None or not card.can_be_fetched:
        raise DataError(f"{name}: cannot be fetched; {way_out(card)}")
    folder = home_folder(home) / "data" / name
    say(f"{name}: {card.what}; licence: {card.licence}; {card.home}", err=True)
    listed = files_of(card, folder)
    unknown = [file_name for file_name in files if file_name not in {file.name for file in listed}]
    if unknown:
        known_names = ", ".join(file.name for file in listed[:_MOST])
        raise ConfigError(f"{unknown[0]}: is not a file of {name}; its files are {known_names}")
    chosen = [file for file in listed if not files or file.name in files]
    with download_bars() as arrived:
        fetched = [fetch_file(file, folder, otherwise=way_out(card), arrived=arrived) for file in chosen]
    for path in fetched[:_MOST]:
        say(path)
    if len(fetched) > _MOST:
        say(f"and {len(fetched) - _MOST} more in {folder}")
    example = fetched[0] if len(fetched) == 1 or card.takes == "a file" else folder
    say(f"look at it: memtune data show --dataset {name} --data {example}")
