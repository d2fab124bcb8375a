"""`memtune mlflow`: send MLflow the writes it missed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from experiments.commands.options import home_option
from experiments.commands.whole_summaries import WholeSummaries
from experiments.display.terminal import say


@click.group(cls=WholeSummaries)
def mlflow() -> None:
    """Bring MLflow up to date after an outage."""


@mlflow.command(
    epilog="""\b
Examples:
  memtune mlflow send latest
  memtune mlflow send 20261121-225700-rag --uri https://user:password@host
"""
)
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
    from tracing.errors import RunError

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
