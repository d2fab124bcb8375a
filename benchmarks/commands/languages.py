"""How well replies are read in each language: by the judge, by the matcher, and by the guard of gold answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from experiments.commands.options import SuggestingChoice
from experiments.commands.output import write_output

if TYPE_CHECKING:
    from benchmarks.matching.replies import Part


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks languages --json languages.json
  python -m benchmarks languages --part development
"""
)
@click.option(
    "--part",
    type=SuggestingChoice(["held-out", "development"]),
    default="held-out",
    show_default=True,
    help="Rules are developed on the second and measured on the first.",
)
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
def languages(part: Part, target: Path | None) -> None:
    """Measure judge, matcher and leak guard on replies in fifteen languages.

    Each accepted answer has a reply that is right in another form, and a wrong one near it. The share right is the mean
    of the right replies that are found and of the wrong ones that are rejected, both in brackets.
    """
    import json
    from dataclasses import asdict

    from benchmarks.languages.measuring import measure_languages
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view

    with run_view() as view:
        figures = measure_languages(part, view.progress)
    if target is not None:
        rows = {
            language: {name: asdict(shares) | {"right": shares.right} for name, shares in row.items()}
            for language, row in figures.items()
        }
        write_output(target, json.dumps({"part": part, "languages": rows}, indent=2) + "\n", "--json")
    table = plain_table("share right (right replies found, wrong ones rejected)", gap=2)
    for name in ("", "n", "judge", "matcher", "guard", "ms"):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for language, row in figures.items():
        cells = [f"{shares.right:.2f} ({shares.found:.2f}, {shares.rejected:.2f})" for shares in row.values()]
        slowest = max(shares.ms_per_reply for shares in row.values())
        table.add_row(language, str(row["judge"].n), *cells, f"{slowest:.1f}")
    LiteralConsole().print(table)
