"""What a run saves by paying only for what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.commands.options import config_from
from experiments.commands.output import write_output

CONVERSATIONS = 6
"""By default, so that it takes minutes: the plain run is made too."""


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks loop
  python -m benchmarks loop --system rag --json loop.json
  python -m benchmarks loop --optimizer closed-loop --conversations 9
"""
)
@click.option("--system", metavar="NAME", help="Memory system: fact-memory, rag or mem0.")
@click.option("--optimizer", metavar="NAME", help="What searches; that of `memtune run` by default.")
@click.option(
    "--conversations",
    type=click.IntRange(min=3),
    default=CONVERSATIONS,
    show_default=True,
    metavar="N",
    help="Conversations of the bundled sample that a run takes, over all splits.",
)
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="File for the figures.")
def loop(conversations: int, file: Path | None, **given: Any) -> None:
    """Measure how many model calls a run makes, beside the same run without any reuse.

    Both runs are made with a scripted model on loopback that makes mistakes, and its server counts what it is asked,
    chats and embeddings. The plain run builds every memory anew, runs its champion again in each round, and runs a
    conversation again to reach an operation's input. The results of both runs are compared. A round that edits the
    answer prompt alone is measured too, without its baselines, on twice as many conversations.
    """
    from benchmarks.loop import measure_loop
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view

    with run_view() as view:
        figures = measure_loop(config_from(None, given), conversations, progress=view.progress)
    if file is not None:
        write_output(file, figures.model_dump_json(indent=2) + "\n", "--json")
    table = plain_table(gap=2)
    for name in ("", "with reuse", "plain", "share"):
        table.add_column(name, justify="right" if name else "left")
    answers = figures.answer_round
    for name, ours, plain in (
        ("calls, whole run", figures.calls_ours, figures.calls_plain),
        ("tokens, whole run", figures.tokens_ours, figures.tokens_plain),
        ("calls, a round that edits the answer prompt", answers.calls_ours, answers.calls_plain),
    ):
        table.add_row(name, f"{ours:,}", f"{plain:,}", f"{ours / plain:.1%}")
    console = LiteralConsole()
    console.print(table)
    console.print("the results are equal" if figures.identical else "the results DIFFER")
