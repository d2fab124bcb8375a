"""`memtune diagnose`: the diagnosis, which says what went wrong, where and why, on one page."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.examples import examples
from experiments.commands.options import home_option, whose_traces_option
from experiments.commands.output import write_output
from experiments.display.terminal import say


@click.command(epilog=examples("diagnose"))
@click.argument("source", metavar="RUN|ATTRIBUTIONS")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="diagnosis.html",
    show_default=True,
    help="File for the diagnosis; the extension (.html, .md or .json) sets the format.",
)
@whose_traces_option
@click.option(
    "--ladder",
    type=click.Path(path_type=Path),
    help="Oracle ladder to show, from `memtune data audit --json` [default: ladder.json in the run's folder].",
)
@home_option
def diagnose(source: str, out: Path, traces_of: str, ladder: Path | None, home: Path | None) -> None:
    """Write the diagnosis of a run, or of an attributions file that `memtune attribute` wrote: why answers are wrong.

    For what the run did, see report.html in its folder, which `memtune run` writes.

    Shows loss by operation, error types, where information was lost, clusters of failures, what to do and what no
    prompt can fix. Every claim links to its cases, each with a picture of where what it needed was
    lost. One file, works offline.
    """
    from experiments.diagnosis.diagnosis_page import render_html, render_markdown
    from experiments.diagnosis.diagnosis_source import case_pictures, diagnosis_of, pages_of
    from experiments.display.tables import run_view
    from experiments.running.parts import home_folder
    from tracing.errors import ConfigError

    if out.suffix not in (".html", ".md", ".json"):
        raise ConfigError(f"--out {out}: ends in neither .html, .md nor .json; give it one of these extensions")
    where = home_folder(home)
    with run_view() as view:
        facts, folder = diagnosis_of(source, where, prompts=traces_of, ladder=ladder, progress=view.progress)
        if out.suffix == ".html":
            text = render_html(facts, case_pictures(facts, folder), pages_of(facts, folder, out.parent))
        elif out.suffix == ".md":
            text = render_markdown(facts, case_pictures(facts, folder))
        else:
            text = facts.model_dump_json(indent=2) + "\n"
    write_output(out, text, "--out")
    counts = facts.counts
    leaks = f"leaks between users: {len(facts.leaks)}; " if facts.leaks else ""
    say(
        f"wrong answers: {counts.failures}, {counts.attributed} attributed, {counts.abstained} abstained from, "
        f"{counts.undone} failed; traces: {counts.traces}, {counts.damaged} with a problem; {leaks}see {out}"
    )
