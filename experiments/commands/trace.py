"""`memtune trace`: what to do with recorded traces."""

from __future__ import annotations

import click

from experiments.commands.trace_views import diff, search, show, slice_, stats


@click.group()
def trace() -> None:
    """Look into recorded traces: what ran, what it read and made, and where two executions part."""


for _command in (stats, show, search, slice_, diff):
    trace.add_command(_command)
