"""`memtune data validate`: every problem of a data set."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.display.terminal import brief, say


@click.command(
    epilog="""\b
Examples:
  memtune data validate mine.jsonl
  memtune data validate tables/
  memtune data validate longmemeval_s_cleaned.json --dataset longmemeval

Exit code 0 without a problem, 1 with one, 2 if the path cannot be checked at all.
"""
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="What it is, where that is not recognised [default: by its content].")
@click.pass_context
def validate(context: click.Context, path: Path, dataset: str | None) -> None:
    """Check a file or folder of data, and print every problem with its file, line or key, and remedy."""
    from experiments.data.data_check import problems_of_dataset
    from experiments.data.recognition import recognised
    from experiments.display.tables import run_view
    from tracing.errors import DataError

    if not path.exists():
        raise DataError(f"{path}: no such file or folder; give an existing one")
    name = dataset or recognised(path)
    with run_view() as view:
        check = problems_of_dataset(
            name, path, lambda completed, total: view.progress(f"checking {path}", completed, total)
        )
    for problem in check.problems:
        say(brief(problem))
    for note in check.notes:
        say(f"note: {note}", err=True)
    counts = f"{check.conversations} conversations, {check.questions} questions"
    if check.problems:
        say(f"{path}: {len(check.problems)} problem{'s' if len(check.problems) > 1 else ''} as {name} ({counts} read)")
        context.exit(1)
    say(f"{path}: {name}, {counts}, no problem")
