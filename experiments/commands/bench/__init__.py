"""`memtune bench`: measure optimizers and attribution methods on data of your own."""

from __future__ import annotations

import click

from experiments.commands.bench.attribution import attribution
from experiments.commands.bench.optimize import optimize
from experiments.commands.whole_summaries import WholeSummaries


@click.group(cls=WholeSummaries, commands=[optimize, attribution])
def bench() -> None:
    """Measure on your own data: optimizers, an attribution method."""
