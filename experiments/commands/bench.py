"""`memtune bench`: measure the parts of memtune."""

from __future__ import annotations

import click

from experiments.commands.bench_attribution import attribution


@click.group()
def bench() -> None:
    """Measure a part of memtune against a known truth."""


bench.add_command(attribution)
