"""What the embedded model does on a busy machine."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.output import write_output


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks busy
  python -m benchmarks busy --weights smollm2-135m --busy 2 --seconds 20 --json busy.json
"""
)
@click.option(
    "--weights",
    "names",
    multiple=True,
    default=("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"),
    show_default=True,
    metavar="NAME",
    help="Weights that were pulled; repeatable.",
)
@click.option(
    "--threads",
    "ways",
    type=click.Choice(("follow", "1", "2")),
    multiple=True,
    default=("follow", "1", "2"),
    show_default=True,
    help="As many threads as other processes leave free, or a fixed number; repeatable.",
)
@click.option(
    "--busy",
    "numbers",
    type=click.IntRange(0, 64),
    multiple=True,
    default=(0, 1, 2),
    show_default=True,
    metavar="N",
    help="Processes that compute beside it; repeatable.",
)
@click.option("--seconds", type=click.FloatRange(min=1), default=60, show_default=True, help="Of each measurement.")
@click.option("--tokens", type=click.IntRange(1, 512), default=32, show_default=True, help="Of a reply.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="File for the figures.")
def busy(
    names: tuple[str, ...],
    ways: tuple[str, ...],
    numbers: tuple[int, ...],
    seconds: float,
    tokens: int,
    file: Path | None,
) -> None:
    """Measure what a request to the embedded model takes beside busy processes, and alone."""
    from benchmarks.busy_machine import BusyFigures, measure_busy
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view

    with run_view() as view:
        rows = [
            measure_busy(name, threads=threads, busy=number, seconds=seconds, tokens=tokens, progress=view.progress)
            for name in names
            for number in numbers
            for threads in ways
        ]
    if file is not None:
        write_output(file, "[" + ",\n".join(row.model_dump_json() for row in rows) + "]\n", "--json")
    table = plain_table(gap=2)
    for name in BusyFigures.model_fields:
        table.add_column(name, justify="left" if name in ("weights", "threads") else "right")
    for row in rows:
        table.add_row(
            *(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.model_dump().values())
        )
    LiteralConsole().print(table)
