"""What memtune makes of the habits of providers' endpoints."""

from __future__ import annotations

import json
from pathlib import Path

import click

from experiments.commands.output import write_output


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks providers --json providers.json
  python -m benchmarks providers --command eval --habit gemini
"""
)
@click.option("--habit", metavar="WORD", default="", help="Only habits with this in their name.")
@click.option("--command", metavar="NAME", help="Only this command: run, eval or doctor.")
@click.option("--system", metavar="NAME", help="Only this memory system: fact-memory or rag.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="File for the figures.")
def providers(habit: str, command: str | None, system: str | None, file: Path | None) -> int:
    """Run commands on a scripted endpoint with each habit that providers are known to have.

    A habit ends with the score of a clean endpoint; or with a failure that names cause and remedy, after which the
    mended endpoint gives the clean score in the same home; or, in silence, with neither. The exit code is 1 if any is
    silent. All of them take about half an hour.
    """
    from benchmarks.providers.measure import measure_providers
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view

    with run_view() as view:
        figures = measure_providers(habit, command, system, progress=view.progress)
    if file is not None:
        write_output(file, figures.model_dump_json(indent=2) + "\n", "--json")
    table = plain_table(gap=2)
    for name in ("command", "system", "tried", "same score", "told", "silent"):
        table.add_column(name, justify="left" if name in ("command", "system") else "right")
    for total in figures.totals:
        counts = (total.tried, total.same_score, total.told, total.silent)
        table.add_row(total.command, total.system, *map(str, counts))
    console = LiteralConsole()
    console.print(table)
    for name, habit_figures in figures.habits.items():
        for why in habit_figures.why:
            console.print(f"{name}: {json.dumps(why)}", soft_wrap=True)
    return 1 if any(total.silent for total in figures.totals) else 0
