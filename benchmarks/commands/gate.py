"""How often gate and verdict find an improvement, and how often they find none where none is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.commands.output import write_output
from experiments.display.terminal import say

BUNDLED = Path(__file__).parents[1] / "recorded_answers.json"
"""Answers of the fact memory with Qwen2.5-Coder 0.5B to the learning conversations of the bundled sample."""


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks gate
  python -m benchmarks gate --test 10 --conversations 14
  python -m benchmarks gate --recorded train.json --recorded validation.json --trials 2000 --json gate.json
"""
)
@click.option(
    "--recorded",
    type=click.Path(path_type=Path),
    multiple=True,
    default=(BUNDLED,),
    help="Answers to draw from, of `memtune eval --json`; may be repeated [default: those of the fact memory to the "
    "bundled sample].",
)
@click.option(
    "--conversations",
    type=click.IntRange(min=4),
    default=24,
    show_default=True,
    metavar="N",
    help="Conversations to search with (train and validation).",
)
@click.option("--test", type=click.IntRange(min=1), default=32, show_default=True, metavar="N", help="Held-out ones.")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Challengers an effect.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the draws.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="File for the figures.")
def gate(recorded: tuple[Path, ...], *, file: Path | None, **sizes: Any) -> None:
    """Simulate how often a challenger with a known effect becomes champion and is found improved on the test.

    A challenger is made of answers to two sets of prompts, so the figures depend on how many answers an edit changes;
    they are given for each of the recorded prompts too.
    """
    from benchmarks.gate_simulation import EFFECTS, measure_gate, read_recorded
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view

    answers = read_recorded(*recorded)
    with run_view() as view:
        figures = measure_gate(answers, **sizes, progress=view.progress)
    if file is not None:
        write_output(file, figures.model_dump_json(indent=2) + "\n", "--json")
    table = plain_table(gap=2)
    table.add_column("prompts")
    for name in ("changed", "no effect", *(f"{effect:+.2f}" for effect in EFFECTS), "conversations"):
        table.add_column(name, justify="right")
    for name, rates in [("all", figures), *figures.by_prompts.items()]:
        table.add_row(
            name,
            f"{rates.changed:.3f}",
            f"{rates.null_rate:.3f}",
            *(f"{share:.3f}" for share in rates.power.values()),
            f"{rates.calls:.1f}",
        )
    LiteralConsole().print(table)
    say("shares found improved, by true effect, and conversations a challenger met")
