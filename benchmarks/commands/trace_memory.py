"""What a trace memory saves, what it finds, and how fast it is."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.output import write_output


@click.command(
    name="trace-memory",
    epilog="""\b
Examples:
  python -m benchmarks trace-memory
  python -m benchmarks trace-memory --events 1000000 --json trace-memory.json
  python -m benchmarks trace-memory --store postgresql://me@127.0.0.1/scratch
""",
)
@click.option(
    "--events",
    type=click.IntRange(1000, 10_000_000),
    default=100_000,
    show_default=True,
    help="Size to which the store grows.",
)
@click.option("--store", metavar="URL", help="An empty Postgres database; by default a SQLite file that is removed.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="File for the figures.")
def trace_memory(events: int, store: str | None, file: Path | None) -> None:
    """Measure tokens, precision and recall on the data set agent-traces, and the speed of a growing store.

    It needs the extra `embedded`. Times are wall-clock, so other programs count.
    """
    import tempfile

    from rich.table import Table

    from benchmarks.trace_memory.figures import TraceMemoryFigures, bars
    from benchmarks.trace_memory.projects import read_projects
    from benchmarks.trace_memory.quality import measure_quality
    from benchmarks.trace_memory.speed import measure_speed
    from experiments.display.literal_console import LiteralConsole, styled
    from tracing.errors import ConfigError
    from tracing.trace_memory.semantic import E5Embedding

    if store is not None and "://" not in store:
        raise ConfigError(f"--store {store}: is not an address; give postgresql://…, or leave it out for a SQLite file")
    errors = LiteralConsole(stderr=True)
    with tempfile.TemporaryDirectory(prefix="memtune-bench-") as folder, errors.status("measuring") as status:
        model = E5Embedding()
        quality = measure_quality(read_projects(), store or f"{folder}/quality.db", model, model.tokens, status.update)
        speed = measure_speed(store or f"{folder}/speed.db", events, status.update)
    figures = TraceMemoryFigures(store="postgres" if store else "sqlite", quality=quality, speed=speed)
    if file is not None:
        write_output(file, figures.model_dump_json(indent=2) + "\n", "--json")
    console = LiteralConsole()
    table = Table()
    for title in ("recall", "precision", "recall of evidence", "tokens", "fewer"):
        table.add_column(title, justify="left" if title == "recall" else "right")
    for name in ("filtered", "worded", "semantic", "semantic_as_many"):
        recall = getattr(quality, name)
        table.add_row(
            name.replace("_", " "),
            f"{recall.precision:.2f}",
            f"{recall.recall:.2f}",
            f"{recall.tokens:.0f}",
            f"{recall.fewer:.0%}",
        )
    console.print(table)
    console.print(
        f"{quality.events} events, {quality.questions} questions; a kept conversation has "
        f"{quality.conversation_tokens:.0f} tokens, an event {quality.tokens_an_event:.0f} instead of "
        f"{quality.kept_tokens_an_event:.0f} ({quality.stored_fewer:.0%} fewer if all are shown)"
    )
    growth = Table()
    for title in ("events", "events a second", "recall p50 ms", "recall p99 ms", "bytes an event"):
        growth.add_column(title, justify="right")
    for size in speed.sizes:
        space = "–" if size.bytes_an_event is None else f"{size.bytes_an_event:.0f}"
        times = (f"{size.recall_ms.p50_ms:.2f}", f"{size.recall_ms.p99_ms:.2f}")
        growth.add_row(f"{size.events:,}", f"{size.events_s:,.0f}", *times, space)
    console.print(growth)
    for name, took in (
        ("asynchronous write", speed.write_ms),
        ("in a burst", speed.burst_write_ms),
        ("synchronous write", speed.sync_write_ms),
    ):
        console.print(f"{name}: p50 {took.p50_ms:.3f} ms, p99 {took.p99_ms:.3f} ms, worst {took.worst_ms:.1f} ms")
    verdicts = Table()
    for title in ("figure", "measured", "bar", ""):
        verdicts.add_column(title, justify="left" if title in ("figure", "") else "right")
    for bar, least in bars(figures):
        met = bar.measured >= bar.limit if least else bar.met
        sign = "≥" if least else "≤"
        verdicts.add_row(
            bar.figure, f"{bar.measured:.2f}", f"{sign} {bar.limit:.2f}", "met" if met else styled(("not met", "bold"))
        )
    console.print(verdicts)
