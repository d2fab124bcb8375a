"""`memtune bench`: measure the parts of memtune."""

from __future__ import annotations

import click

from experiments.commands.bench_tracing import tracing


@click.group()
def bench() -> None:
    """Measure a part of memtune, beside the tools people would use otherwise."""


bench.add_command(tracing)
