"""How fast memtune records and loads on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.output import write_output


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks tracing
  python -m benchmarks tracing --json tracing.json
"""
)
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="File for the figures.")
def tracing(file: Path | None) -> None:
    """Measure recording and loading in a few minutes: medians of seven repetitions.

    It needs the extra `run`, about 2 GiB of memory and 500 MB in the folder for temporary files.
    """
    import tempfile

    from rich.table import Table

    from benchmarks.figures import RecordFigures, TracingFigures, bars
    from benchmarks.loading import measure_native, measure_smartcomment
    from benchmarks.recording_cost import measure_recording
    from experiments.display.literal_console import LiteralConsole, styled

    errors = LiteralConsole(stderr=True)
    with tempfile.TemporaryDirectory(prefix="memtune-bench-") as name, errors.status("measuring") as status:
        folder = Path(name)
        recording = measure_recording(folder, status.update)
        smartcomment, json_loads_40k_s = measure_smartcomment(folder, status.update)
        native, growth, json_loads_1m_s = measure_native(folder, status.update)
    figures = TracingFigures(
        record_us=RecordFigures(**{depth: recording[depth] for depth in ("depth0", "depth20", "depth60")}),
        mutable_us=recording["mutable"],
        durable_us=recording["durable"],
        otel_span_us=recording["otel"],
        mlflow_span_us=recording["mlflow"],
        disabled_us=recording["disabled"],
        load_smartcomment_40k_s=smartcomment,
        native_1m=native,
        growth_exponent=growth,
        json_loads_40k_s=json_loads_40k_s,
        json_loads_1m_s=json_loads_1m_s,
    )
    if file is not None:
        write_output(file, figures.model_dump_json(indent=2) + "\n", "--json")
    table = Table()
    for title in ("figure", "measured", "bar", ""):
        table.add_column(title, justify="left" if title in ("figure", "") else "right")
    for bar in bars(figures):
        met = "met" if bar.met else styled(("not met", "bold"))
        table.add_row(bar.figure, f"{bar.measured:.2f}", f"≤ {bar.limit:.2f}", met)
    for title, value in (
        ("mutable_us", recording["mutable"]),
        ("otel_span_us", recording["otel"]),
        ("mlflow_span_us", recording["mlflow"]),
        ("Python alone (µs an operation)", recording["floor"]),
        ("json_loads_40k_s", json_loads_40k_s),
        ("json_loads_1m_s", json_loads_1m_s),
    ):
        table.add_row(title, f"{value:.2f}", "–", "")
    LiteralConsole().print(table)
