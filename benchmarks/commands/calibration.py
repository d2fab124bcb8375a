"""How sure verdicts by survival may be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.output import write_output

if TYPE_CHECKING:
    from rich.table import Table


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks calibration --cases 60
  python -m benchmarks calibration --labelled annotated/ --data locomo10.json --json calibration.json
"""
)
@click.option(
    "--labelled",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="An annotated graph or a folder of them: failures that people labelled.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="File or folder of a data set whose gold answers are spoiled too, beside the sample's.",
)
@click.option("--dataset", metavar="NAME", help="What --data is, where that is not recognised.")
@click.option(
    "--cases",
    "count",
    type=click.IntRange(min=20),
    default=180,
    show_default=True,
    metavar="N",
    help="At most N injected faults per system and suite.",
)
@click.option("--seed", type=int, default=3, show_default=True, help="Seed for what is injected.")
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
def calibration(
    labelled: Path | None, data: Path | None, dataset: str | None, count: int, seed: int, target: Path | None
) -> None:
    """Measure how well the confidence of survival means what it says, on kinds of cases that it was not fitted on.

    Four sources: failures that people labelled, injected faults, these under hard conditions, and spoiled gold
    answers. Each is left out in turn, and the confidence fitted on the others. The fit on all, which the JSON has, is
    what survival uses. No model is asked.
    """
    import json

    from benchmarks.calibration.fitting import measure
    from benchmarks.calibration.verdicts import on_injected, on_labelled, on_spoiled
    from benchmarks.gold_answers.suite import conversations_to_spoil
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import run_view
    from experiments.runs.config import RunConfig

    verdicts = on_labelled(labelled) if labelled is not None else []
    verdicts += on_spoiled(conversations_to_spoil(None, None), "sample", range(3))
    if data is not None:
        verdicts += on_spoiled(conversations_to_spoil(data, dataset), data.stem, (0,))
    with run_view() as view:
        verdicts += on_injected(RunConfig(), count, seed, view.progress)
    result = measure(verdicts)
    if target is not None:
        write_output(target, json.dumps(result, indent=2, ensure_ascii=False) + "\n", "--json")
    console = LiteralConsole()
    console.print(_table(result))
    console.print(_complaints(result["complaints"]), soft_wrap=True)


def _table(result: dict[str, Any]) -> Table:
    from experiments.display.tables import plain_table

    table = plain_table("each source under the fit on the others", gap=2)
    for name in (
        "",
        "n",
        "right",
        "mean confidence",
        "error",
        "as stated",
        "order (AUC)",
        "wrong ones in the least sure tenth",
    ):
        table.add_column(name, justify="left" if not name else "right")
    for source, row in result["sources"].items():
        table.add_row(source, *_cells(row), style="bold")
        for part, own in row["parts"].items() if len(row["parts"]) > 1 else ():
            table.add_row(f"  {part}", *_cells(own))
    table.add_row("all", *_cells(result["all"]), style="bold")
    return table


def _complaints(shares: dict[str, Any]) -> str:
    parts = [f"{name} {row['right']:.2f} of {row['n']}" for name, row in shares.items() if row["n"]]
    return f"right without a known answer: {'; '.join(parts)}"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    share = "–" if row["found"] is None else f"{row['found']:.2f} of {row['possible']:.2f}"
    order = "–" if row["auc"] is None else "{:.2f} ({:.2f}–{:.2f})".format(row["auc"], *row["auc_ci"])
    return str(row["n"]), *(f"{row[key]:.3f}" for key in ("right", "said", "ece", "stated_ece")), order, share
