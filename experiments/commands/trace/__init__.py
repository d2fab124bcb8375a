"""`memtune trace`: what recorded traces hold."""

from __future__ import annotations

import click

from experiments.commands.examples import examples
from experiments.commands.trace.trace_exchange import export, import_, map_
from experiments.commands.trace.trace_views import diff, search, show, slice_, stats
from experiments.commands.whole_summaries import WholeSummaries


@click.group(
    cls=WholeSummaries,
    commands=[stats, show, search, slice_, diff, import_, map_, export],
    epilog=examples("trace"),
)
def trace() -> None:
    """Explore recorded traces, find where two executions diverge, and exchange traces with other tools."""
