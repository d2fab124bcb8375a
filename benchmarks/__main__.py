"""Measure memtune itself: python -m benchmarks NAME --json FILE, in a clone of the repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from experiments.command import HELP
from experiments.command import main as run_command
from experiments.commands.whole_summaries import LazyCommands
from experiments.interrupts import own_process

PROGRAM = "python -m benchmarks"

BENCHMARKS: Mapping[str, str] = {
    "agents": "agents:agents",
    "attribution": "attribution:attribution",
    "authors": "authors:authors",
    "blame": "blame:blame",
    "busy": "busy:busy",
    "calibration": "calibration:calibration",
    "evidence": "evidence:evidence",
    "gate": "gate:gate",
    "generate": "generate:generate",
    "gold-answers": "gold_answers:gold_answers",
    "halumem": "halumem:halumem",
    "languages": "languages:languages",
    "loop": "loop:loop",
    "matcher": "matcher:matcher",
    "mem0-failures": "mem0_failures:mem0_failures",
    "optimize": "optimize:optimize",
    "providers": "providers:providers",
    "settings": "settings:settings",
    "throughput": "throughput:throughput",
    "trace-memory": "trace_memory:trace_memory",
    "tracing": "tracing:tracing",
}
"""Name → `module:function` under `benchmarks.commands`."""


@click.group(cls=LazyCommands, package="benchmarks.commands", places=BENCHMARKS, context_settings=HELP)
def benchmarks() -> None:
    """Measure memtune itself: what it costs, how often it is right, and what its parts add."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a benchmark and exit, as `experiments.command.main` does."""
    run_command(arguments, command=benchmarks, program=PROGRAM)


if __name__ == "__main__":
    own_process()
    main()
