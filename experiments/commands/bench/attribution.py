"""`memtune bench attribution`: how often a method names the operation at fault."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import config_from, helper_options, home_option
from experiments.commands.output import write_output

matcher_option = click.option(
    "--matcher",
    metavar="NAME",
    default="words",
    show_default=True,
    help="What decides for the method what a text carries: words, meaning, llm or your own.",
)
complaints_option = click.option(
    "--complaints",
    is_flag=True,
    help="Give the method only what a user knows who says that a reply is wrong: no right answer, no evidence.",
)


@click.command(epilog=examples("bench attribution"))
@click.option(
    "--suite",
    required=True,
    metavar="PATH|memtracebench",
    help="An annotated graph or a folder of them; `memtracebench`: downloaded once from its hub ($HF_ENDPOINT).",
)
@click.option(
    "--method",
    required=True,
    metavar="NAME",
    help="What to measure: an attribution method, or your own as module:Object.",
)
@matcher_option
@complaints_option
@helper_options
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the intervals.")
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
@home_option
def attribution(
    suite: str,
    method: str,
    matcher: str,
    complaints: bool,
    seed: int,
    target: Path | None,
    home: Path | None,
    **given: Any,
) -> None:
    """Measure an attribution method on wrong answers whose decisive operation people labelled.

    --helper-model is for a method which asks one. Faults that are injected into memory systems, and controls
    beside the methods, are measured from a clone of memtune's repository: python -m benchmarks attribution.
    """
    import json

    from attribution.attributor import bound, open_attributor
    from attribution.survival.matching.matcher import WORDS
    from experiments.bench.attribution import (
        accuracy_table,
        add_error_types,
        complaints_in,
        measure,
        needs_models,
        read_suite,
        remarks_on,
        summary,
    )
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import run_view
    from experiments.running.parts import home_folder, open_access

    config = config_from(None, given)
    asks = needs_models(method)
    surely = asks or bool(given.get("model"))
    with run_view() as view:
        cases = read_suite(suite, home_folder(home), view.progress)
        cases = complaints_in(cases) if complaints else cases
        helped = asks or matcher != WORDS
        with open_access(config, home_folder(home), surely=surely) if helped else nullcontext() as access:
            make = bound(open_attributor(method, matcher=matcher), access)
            _, figures = measure(cases, make, access, seed=seed, progress=view.progress)
    if target is not None:
        write_output(target, json.dumps(figures, indent=2, ensure_ascii=False) + "\n", "--json")
    console = LiteralConsole()
    table = accuracy_table(f"{method} on {cases.name}")
    add_error_types(table, figures)
    console.print(table)
    for line in (*remarks_on(cases), *summary(figures)):
        console.print(line, soft_wrap=True)
