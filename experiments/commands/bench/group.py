"""`memtune bench`: measure the parts of memtune."""

from __future__ import annotations

import click

from experiments.commands.bench.attribution import attribution
from experiments.commands.bench.calibration import calibration
from experiments.commands.bench.evidence import evidence
from experiments.commands.bench.exploring import exploring
from experiments.commands.bench.gate import gate
from experiments.commands.bench.gold_answers import gold_answers
from experiments.commands.bench.loop import loop
from experiments.commands.bench.matcher import matcher
from experiments.commands.bench.optimize import optimize
from experiments.commands.bench.throughput import throughput
from experiments.commands.bench.trace_memory import trace_memory
from experiments.commands.bench.tracing import tracing
from experiments.commands.bench.triage import triage
from experiments.commands.whole_summaries import WholeSummaries


@click.group(cls=WholeSummaries)
def bench() -> None:
    """Measure a part of memtune: its cost or its accuracy."""


for _command in (
    gold_answers,
    attribution,
    calibration,
    evidence,
    exploring,
    gate,
    loop,
    matcher,
    optimize,
    throughput,
    trace_memory,
    tracing,
    triage,
):
    bench.add_command(_command)
