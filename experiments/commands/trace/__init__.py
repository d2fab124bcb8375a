"""`memtune trace`: what recorded traces hold."""

from __future__ import annotations

import click

from experiments.commands.trace.trace_exchange import export, import_
from experiments.commands.trace.trace_views import diff, search, show, slice_, stats
from experiments.commands.whole_summaries import WholeSummaries


@click.group(
    cls=WholeSummaries,
    epilog="""\b
Examples:
  memtune trace show run.jsonl --html run.html
  memtune trace diff passing.jsonl failing.jsonl
  memtune trace import graph.json --from smartcomment --out graph.jsonl
  memtune trace export run.jsonl --to otlp --out spans.json
""",
)
def trace() -> None:
    """Explore recorded traces, find where two executions diverge, and exchange traces with other tools."""


for _command in (stats, show, search, slice_, diff, import_, export):
    trace.add_command(_command)
