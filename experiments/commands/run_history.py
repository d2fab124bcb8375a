"""`memtune runs`, `compare`, `ui` and `mlflow`: what to do with runs that are there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from experiments.commands.examples import examples
from experiments.commands.options import home_option
from experiments.commands.whole_summaries import WholeSummaries
from experiments.display.terminal import say
from tracing.errors import RunError


@click.command(epilog=examples("runs"))
@home_option
def runs(home: Path | None) -> None:
    """List the runs of a home, latest first."""
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import runs_table
    from experiments.running.parts import home_folder
    from experiments.runs.comparison import list_runs

    where = home_folder(home)
    summaries = list_runs(where)
    if summaries:
        LiteralConsole().print(runs_table(summaries))
        for folder, summary in summaries:
            if isinstance(summary, RunError) and folder.has_summary:
                say(f"warning: {summary}", err=True)
    else:
        say(f"no runs under {where}; start one with `memtune run demo`")


@click.command(epilog=examples("compare"))
@click.argument("names", metavar="RUN RUN...", nargs=-1, required=True)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a page instead, with the prompts compared, and the questions that are right in one run only.",
)
@home_option
def compare(names: tuple[str, ...], html: Path | None, home: Path | None) -> None:
    """Put two or more runs side by side.

    RUN: a run's id or a prefix of it, `latest` for the latest finished run, or the path of its folder.
    """
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import comparison_lines, comparison_table
    from experiments.running.parts import home_folder
    from experiments.runs.comparison import compare as compared
    from experiments.runs.folder import RunFolder

    if len(names) < 2:
        raise click.UsageError("give two or more runs; `memtune runs` lists them")
    where = home_folder(home)
    folders = [RunFolder.find(where, name, finished=True) for name in names]
    comparison = compared(*folders)
    for problem in comparison.left_out:
        say(f"warning: {problem}", err=True)
    if html is not None:
        from experiments.commands.output import write_output
        from experiments.reports.comparison_page import render_comparison

        write_output(html, render_comparison(folders, comparison, html.parent), "--html")
        say(f"written to {html}")
        return
    console = LiteralConsole()
    for line in comparison_lines(comparison):
        console.print(line)
    console.print(comparison_table(comparison))


@click.command(epilog=examples("ui"))
@click.option("--port", type=click.IntRange(1, 65535), help="Port on 127.0.0.1 [default: 5000, or a free one].")
@home_option
def ui(port: int | None, home: Path | None) -> None:
    """Show runs in the MLflow UI on this machine, until Ctrl-C.

    The address it prints is that of the run in progress, or of the latest run that finished.
    """
    from experiments.mlflow_tracking.server_ui import LOG, page_of_interest, require_store, start_ui, stop_ui
    from experiments.running.parts import home_folder

    where = home_folder(home)
    require_store(where)
    say("starting the MLflow UI …", err=True)
    process, address = start_ui(where, port=port)
    try:
        say(f"{address}{page_of_interest(where)}  (Ctrl-C ends it)")
        process.wait()
        raise RunError(f"the MLflow UI ended by itself; {where / LOG} says why")
    except KeyboardInterrupt:
        say("", err=True)
    finally:
        stop_ui(process)


@click.group(cls=WholeSummaries)
def mlflow() -> None:
    """Bring MLflow up to date after an outage."""


@mlflow.command(epilog=examples("mlflow send"))
@click.argument("run", metavar="RUN")
@click.option("--uri", metavar="URI", help="URI of the store, if it needs a password: a run's folder keeps none.")
@home_option
def send(run: str, uri: str | None, home: Path | None) -> None:
    """Send MLflow what it missed of a run while it was unreachable. Nothing is written twice.

    RUN: a run's id or a prefix of it, `latest` for the latest started run, or the path of its folder.
    """
    from experiments.mlflow_tracking.outbox import Outbox
    from experiments.mlflow_tracking.tracking import SEND_SECONDS
    from experiments.running.parts import home_folder
    from experiments.runs.folder import LOCK, RunFolder
    from experiments.runs.lock import locked

    folder = RunFolder.find(home_folder(home), run)
    with locked(folder.path / LOCK):
        outbox = Outbox.load(folder, uri=uri, timeout=60)
        before = outbox.waiting + len(outbox.refused)
        outbox.flush(seconds=SEND_SECONDS)
        link = outbox.link
        summary = folder.summary()
        if summary.mlflow is None and link is not None:
            folder.write_summary(replace(summary, mlflow=link))
    say(f"sent {before - outbox.waiting - len(outbox.refused)} of {before} writes to MLflow")
    for reason in outbox.refused[:1]:
        say(f"warning: MLflow did not get {len(outbox.refused)} of them: {reason}", err=True)
    if outbox.waiting:
        why = outbox.trouble or "time limit reached"
        raise RunError(f"{outbox.waiting} writes still wait: {why}; send them when the store answers")
