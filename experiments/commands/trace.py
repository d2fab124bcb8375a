"""`memtune trace`: what to do with recorded traces."""

from __future__ import annotations

import click

from experiments.commands.trace_exchange import export, import_


@click.group(
    epilog="""\b
Examples:
  memtune trace import graph.json --from smartcomment --out graph.jsonl
  memtune trace export run.jsonl --to otlp --out spans.json
"""
)
def trace() -> None:
    """Look at recorded traces, and exchange them with other tools."""


for command in (import_, export):
    trace.add_command(command)
