"""How well an evaluation uses an endpoint."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.output import write_output


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks throughput
  python -m benchmarks throughput --calls 500 --concurrency 16 --json throughput.json
"""
)
@click.option("--calls", type=click.IntRange(min=1), default=2000, show_default=True, help="Model calls to make.")
@click.option(
    "--latency",
    type=click.FloatRange(min=0.001, max=60),
    default=0.2,
    show_default=True,
    metavar="SECONDS",
    help="Time the endpoint takes per reply.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 64),
    default=64,
    show_default=True,
    metavar="N",
    help="Concurrent requests the endpoint allows.",
)
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="File for the figures.")
def throughput(calls: int, latency: float, concurrency: int, file: Path | None) -> None:
    """Measure what share of an endpoint's possible calls per second an evaluation makes.

    The endpoint is on loopback. It refuses one request in thirty once, with 429 and Retry-After. The
    same calls through the bare openai SDK are the peer.
    """
    from benchmarks.throughput import measure_throughput
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view

    with run_view() as view:
        figures = measure_throughput(calls=calls, latency_s=latency, allowed=concurrency, progress=view.progress)
    if file is not None:
        write_output(file, figures.model_dump_json(indent=2) + "\n", "--json")
    table = plain_table(gap=2)
    table.add_column("figure")
    table.add_column("measured", justify="right")
    for name, value in figures.model_dump().items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else f"{value:,.3f}")
    LiteralConsole().print(table)
