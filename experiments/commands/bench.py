"""`memtune bench`: measure the parts of memtune."""

from __future__ import annotations

import click

from experiments.commands.bench_attribution import attribution
from experiments.commands.bench_tracing import tracing


@click.group()
def bench() -> None:
    """Measure a part of memtune: against the tools people would use otherwise, or against a known truth."""


for _command in (tracing, attribution):
    bench.add_command(_command)
