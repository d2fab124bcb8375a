"""`memtune trace`: what to do with recorded traces."""

from __future__ import annotations

import click

from experiments.commands.trace_exchange import export, import_


@click.group()
def trace() -> None:
    """Look at recorded traces, and exchange them with other tools."""


for command in (import_, export):
    trace.add_command(command)
