"""`memtune watch`: a run in progress, from another terminal."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.examples import examples
from experiments.commands.options import home_option
from experiments.display.terminal import say


@click.command(epilog=examples("watch"))
@click.argument("run", metavar="[RUN]", required=False)
@home_option
def watch(run: str | None, home: Path | None) -> int:
    """Follow a run in progress: its phases, scores, attempts, calls and cost, and how it ends.

    RUN: a run's id or a prefix of it, `latest` for the one started last, or the path of its folder. By default it is
    the run of the home that a process works on.

    Exit code 0 if the run finished, 1 if it stopped before its end, or if none is in progress.
    """
    from experiments.commands.output import show_result
    from experiments.display.tables import run_view
    from experiments.display.watching import WatchedRun
    from experiments.running.parts import home_folder
    from experiments.runs.folder import REPORT, RunFolder

    where = home_folder(home)
    if run is not None:
        folder = RunFolder.find(where, run)
    else:
        runs = RunFolder.all(where)
        live = [folder for folder in runs if folder.process is not None]
        if not live:
            others = f"; see one that ended with: memtune watch {runs[-1].named}" if runs else ""
            say(f"no run is in progress under {where} (name one that has --out by its folder){others}", err=True)
            return 1
        folder = live[-1]
    try:
        with run_view(stderr=False) as view:
            WatchedRun(folder, view, say).follow()
    except KeyboardInterrupt as error:
        error.add_note(f"the run goes on; watch it again with: memtune watch {folder.named}")
        raise
    summary = folder.summary()
    if not summary.finished:
        why = "its process ended before it did, as when it is killed" if summary.ended.kind == "running" else ""
        say(f"{folder.id}: {why or summary.stopped}; go on with: {folder.resume_command}", err=True)
        return 1
    show_result(summary)
    say(f"report: {folder.path / REPORT}")
    return 0
