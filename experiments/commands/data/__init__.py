"""`memtune data`: data sets before calls are spent on them."""

from __future__ import annotations

import click

from experiments.commands.data.data_audit import audit
from experiments.commands.data.generation import generate
from experiments.commands.data.inspection import show, validate
from experiments.commands.data.public_homes import fetch, list_
from experiments.commands.data.reviewing import review
from experiments.commands.examples import examples
from experiments.commands.whole_summaries import WholeSummaries


@click.group(
    cls=WholeSummaries,
    commands=[list_, show, validate, fetch, generate, review, audit],
    epilog=examples("data"),
)
def data() -> None:
    """Find, fetch, generate, check and look at data sets, and measure how much each operation could gain on one."""
