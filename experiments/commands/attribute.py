"""`memtune attribute`: whose fault many wrong answers are."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from experiments.commands.options import home_option, model_options
from experiments.methods import METHODS

DEFAULT_OUT = "attributions.jsonl"


@click.command(
    epilog="""\b
Examples:
  memtune attribute latest
  memtune attribute conv-26.json --out conv-26.attributions.jsonl
  memtune attribute traces/ --data conversations.jsonl --workers 4
  memtune attribute latest --method triage --model gpt-4.1-mini --base-url https://api.openai.com/v1
""",
)
@click.argument("sources", nargs=-1, required=True, metavar="TRACE|FOLDER|RUN...")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=DEFAULT_OUT,
    show_default=True,
    help="File of the results, a line a case; where it exists, what it holds is not done again.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="survival",
    show_default=True,
    help="survival asks no model, assisted asks one short questions, agent explores with one; "
    "triage: the agent where survival is unsure.",
)
@click.option(
    "--prompts",
    type=click.Choice(("seed", "champion", "all")),
    default="champion",
    show_default=True,
    help="Of a run: the traces of which prompts.",
)
@click.option(
    "--data", type=click.Path(path_type=Path), help="Conversations with the questions that were asked (jsonl)."
)
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True, help="Cases at the same time.")
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=120.0, show_default=True, help="Seconds a case may take a model."
)
@model_options
@home_option
@click.pass_context
def attribute(
    context: click.Context,
    /,
    sources: tuple[str, ...],
    out: Path,
    method: str,
    prompts: str,
    data: Path | None,
    workers: int,
    timeout: float,
    model: str | None,
    base_url: str | None,
    budget_calls: int | None,
    home: Path | None,
) -> None:
    """Say of every wrong answer whose fault it is.

    SOURCES are traces (ours, or graphs of smartcomment and MemTraceBench), folders of them, or runs. Start the same
    command again to go on after an interruption. Exit code 0, or 1 where a trace was damaged or a case failed: what
    could be done is done.
    """
    from experiments.attributions import AttributionsFile, Header
    from experiments.batch import Batch
    from experiments.case_sources import sources_of
    from experiments.console import run_view
    from experiments.methods import ASKING, method_named
    from experiments.wiring import home_folder, model_access

    where = home_folder(home)
    found = sources_of(sources, where, prompts=prompts, data=data)
    with ExitStack() as stack:
        access = None
        if method in ASKING:
            access = stack.enter_context(
                model_access(where, model=model, base_url=base_url, calls=budget_calls, timeout=timeout)
            )
        header = Header(method=method, model=access.task.settings.model if access else None)
        file = stack.enter_context(AttributionsFile.open(out, header))
        view = stack.enter_context(run_view())
        batch = Batch(
            method_named(method, access, seconds=timeout),
            file.said,
            file.append,
            folder=out.resolve().parent,
            access=access,
            workers=workers,
        )
        try:
            tally = batch.run(found, lambda done, total: view.progress("traces", done, total))
        except KeyboardInterrupt:
            click.echo(f"{batch.tally.line()}; saved in {out}, start it again to go on", err=True)
            raise
        problems = [line.problem for line in file.said.traces.values() if line.problem is not None]
    for problem in problems:
        click.echo(f"warning: {problem}", err=True)
    click.echo(f"{tally.line()}; see {out}, or: memtune report {out}")
    if not tally.complete:
        context.exit(1)
