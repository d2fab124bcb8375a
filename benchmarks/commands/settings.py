"""What settings retrieve that were chosen by what is retrieved."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.options import home_option
from experiments.commands.output import write_output


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks settings
  python -m benchmarks settings --data locomo7.json --learn conv-26,conv-41,conv-42 --json settings.json
"""
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Conversations of LoCoMo; by default the bundled sample.",
)
@click.option(
    "--learn",
    metavar="NAMES",
    help="Conversations to choose on, with commas; all others are held out. By default those of train, and the test's "
    "are held out.",
)
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
@home_option
def settings(data: Path | None, learn: str | None, target: Path | None, home: Path | None) -> None:
    """Measure what RAG retrieves under settings that were chosen by what is retrieved, on other conversations.

    The figure is the share of the annotated turns that are in what the answer reads. No chat model is asked.
    """
    import json
    from dataclasses import asdict
    from functools import partial

    from benchmarks.retrieval_settings import choose_and_measure, parted
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view
    from experiments.running.parts import home_folder, open_access
    from experiments.runs.config_file import load_config

    overrides = {"system": "rag"} if data is None else {"system": "rag", "dataset": "locomo", "data": str(data)}
    config = load_config(None, overrides=overrides)
    learned_from, held_out = parted(config, learn)
    where = home_folder(home)
    with run_view() as view, open_access(config, where, surely=False) as access:
        step = partial(view.progress, "what other settings retrieve", failed=0)
        choice = choose_and_measure(config, access, where, learned_from, held_out, step)
    if target is not None:
        figures = asdict(choice) | {"gain": choice.gain, "interval": choice.interval}
        write_output(target, json.dumps(figures, indent=2) + "\n", "--json")
    table = plain_table("evidence retrieved on held-out conversations", gap=2)
    for name in ("conversation", "questions", "own recall", "tokens", "chosen recall", "tokens"):
        table.add_column(name, justify="left" if name == "conversation" else "right")
    for name, own in choice.own.items():
        chosen = choice.chosen[name]
        cells = [cell for found in (own, chosen) for cell in (f"{found.recall:.3f}", f"{found.tokens:.0f}")]
        table.add_row(name, str(own.questions), *cells)
    console = LiteralConsole()
    console.print(table)
    values = ", ".join(f"{name} {value}" for name, value in choice.settings.items()) or "the system's own"
    low, high = choice.interval or (float("nan"), float("nan"))
    console.print(
        f"chosen on {len(learned_from)} conversations, of {choice.compared} others, in {choice.cpu_seconds:.0f} CPU "
        f"seconds: {values}; recall {choice.gain:+.3f} ({low:+.3f} to {high:+.3f}), "
        f"{choice.tokens_saved:.0%} fewer tokens"
    )
