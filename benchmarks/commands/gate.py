"""How often gate and verdict find an improvement, and how often they find none where none is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.commands.bench.gate import gate_options, simulate

BUNDLED = Path(__file__).parents[1] / "recorded_answers.json"
"""Answers of the fact memory with Qwen2.5-Coder 0.5B to the learning conversations of the bundled sample."""


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks gate
  python -m benchmarks gate --test 10 --conversations 14
"""
)
@click.option(
    "--recorded",
    type=click.Path(path_type=Path),
    default=BUNDLED,
    help="Answers to draw from, as of `memtune bench gate` [default: bundled ones].",
)
@gate_options
def gate(recorded: Path, **sizes: Any) -> None:
    """Simulate how often a challenger with a known effect becomes champion and is found improved on the test.

    As `memtune bench gate`, by default on answers of the fact memory to the bundled sample.
    """
    simulate(recorded, **sizes)
