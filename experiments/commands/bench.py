"""`memtune bench`: measure attribution methods on data of your own: how often one names the operation at fault."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import config_from, helper_options, home_option
from experiments.commands.output import write_output
from experiments.commands.whole_summaries import WholeSummaries

matcher_option = click.option(
    "--matcher",
    metavar="NAME",
    default="words",
    show_default=True,
    help="What decides for the method what a text carries: words, llm or your own.",
)


GONE = {
    "gate": "it measures memtune, not your prompts; in a clone it is `python -m benchmarks gate --recorded FILE`",
    "optimize": "run each and `memtune compare` them; over seeds, in a clone, it is `python -m benchmarks optimize`",
}


@click.group(cls=WholeSummaries, gone=GONE)
def bench() -> None:
    """Measure on your own data: an attribution method."""


@bench.command(epilog=examples("bench attribution"))
@click.option(
    "--suite",
    type=click.Path(path_type=Path),
    required=True,
    help="An annotated graph, or a folder of them (`memtune annotate --export`, `memtune data fetch memtracebench`).",
)
@click.option(
    "--method", required=True, metavar="NAME", help="The attribution method to measure; your own as module:Object."
)
@matcher_option
@helper_options
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
@home_option
def attribution(suite: Path, method: str, matcher: str, target: Path | None, home: Path | None, **given: Any) -> None:
    """Measure an attribution method on wrong answers whose decisive operation people labelled.

    --helper-model is for a matcher or method which asks one. More figures, faults that are injected into memory
    systems, and controls beside the methods are in a clone of memtune's repository: python -m benchmarks attribution.
    """
    import json

    from attribution.attributor import SURVIVAL, bound, open_attributor
    from attribution.survival.matching.matcher import WORDS
    from experiments.bench.attribution import measure_attribution
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view
    from experiments.running.parts import home_folder, open_access

    factory = open_attributor(method, matcher=matcher)
    config = config_from(None, given)
    helped = method != SURVIVAL or matcher != WORDS
    surely = method != SURVIVAL or bool(given.get("model"))
    with (
        run_view() as view,
        open_access(config, home_folder(home), surely=surely) if helped else nullcontext() as access,
    ):
        figures, remarks = measure_attribution(suite, bound(factory, access), access, view.progress)
    if target is not None:
        write_output(target, json.dumps(figures, indent=2, ensure_ascii=False) + "\n", "--json")
    table = plain_table(f"{method} on {suite.stem}", gap=2)
    for name in ("", "n", "error type", "operation", "precision"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name, row in [*figures["by_type"].items(), ("all", figures)]:
        shares = (_share(row, "eta"), _share(row, "oia"), _share(row, "precision"))
        table.add_row(name, str(row["n"]), *shares, style="bold" if row is figures else None)
    console = LiteralConsole()
    console.print(table)
    for line in remarks:
        console.print(line, soft_wrap=True)
    if figures["failed"]:
        console.print(f"warning: the method or its model failed on {figures['failed']:,} of {figures['n']:,} cases")
    console.print(f"always naming the most frequent error type is right in {figures['majority_eta']:.3f}")


def _share(row: dict[str, Any], key: str) -> str:
    if row.get(key) is None:
        return "–" if key in row else ""
    low, high = row.get(f"{key}_ci") or (None, None)
    return f"{row[key]:.3f}" if low is None else f"{row[key]:.3f} ({low:.2f}–{high:.2f})"
