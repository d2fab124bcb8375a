"""`memtune data fetch`: a data set from its public home."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.options import home_option
from experiments.display.terminal import say


@click.command(
    epilog="""\b
Examples:
  memtune data fetch locomo
  memtune data fetch longmemeval longmemeval_oracle.json
  memtune data fetch realmem --home shared-home
"""
)
@click.argument("name")
@click.argument("files", nargs=-1, metavar="[FILE...]")
@home_option
def fetch(name: str, files: tuple[str, ...], home: Path | None) -> None:
    """Fetch the data set NAME, or only some of its files, from its public home.

    A file is verified by its SHA-256. Where memtune does not know it, the first fetch records it in SHA256SUMS, and
    later ones must bring the same bytes. A download that stopped is continued. Mind the licence that is printed.
    """
    import functools

    from rich.progress import BarColumn, DownloadColumn, TaskID, TransferSpeedColumn

    from experiments.data.cards import files_of, way_out
    from experiments.data.datasets import DATASETS, card_of
    from experiments.data.file_download import fetch as fetch_file
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.progress import progress_on
    from experiments.running.wiring import home_folder
    from tracing.errors import ConfigError, DataError

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
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn())
    fetched = []
    with progress_on(LiteralConsole(stderr=True), *columns) as progress:

        @functools.cache
        def task_of(title: str) -> TaskID:
            return progress.add_task(title, total=None)

        def arrived(title: str, received: int, size: int) -> None:
            progress.update(task_of(title), completed=received, total=size or None)

        for file in chosen:
            fetched.append(fetch_file(file, folder, otherwise=way_out(card), arrived=arrived))
    for path in fetched[:_MOST]:
        say(path)
    if len(fetched) > _MOST:
        say(f"and {len(fetched) - _MOST} more in {folder}")
    example = fetched[0] if len(fetched) == 1 or card.takes == "a file" else folder
    say(f"look at it: memtune data show --dataset {name} --data {example}")


_MOST = 12
