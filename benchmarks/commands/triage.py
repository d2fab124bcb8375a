"""What a model's help adds to survival, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.commands.suite_options import suite_options
from experiments.commands.options import config_from
from experiments.commands.output import write_output

if TYPE_CHECKING:
    from rich.table import Table


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks triage --suite injected --model qwen2.5-coder-0.5b --cases 10 --json triage.json
  python -m benchmarks triage --suite annotated/ --second agent --model gpt-4.1-mini --base-url URL --below 0.7
"""
)
@click.option(
    "--suite",
    required=True,
    metavar="PATH|injected|injected-hard|memtracebench",
    help="An annotated graph or a folder of them, passed cases with injected faults, or the public suite.",
)
@click.option(
    "--second",
    metavar="NAME",
    default="assisted",
    show_default=True,
    help="The method that is asked where survival is unsure: assisted, agent or your own as module:Object.",
)
@click.option(
    "--below",
    type=click.FloatRange(min=0.1, max=1.0),
    default=0.9,
    show_default=True,
    metavar="C",
    help="Ask about verdicts below this confidence; lower thresholds are worked out from the same calls.",
)
@suite_options
def triage(
    suite: str,
    second: str,
    below: float,
    count: int,
    seed: int,
    target: Path | None,
    home: Path | None,
    **given: Any,
) -> None:
    """Measure what a model's help adds to survival, over the confidence below which it is asked.

    Where both name something, the more confident verdict counts. The row of 0 is survival alone. `helped` and `hurt`
    count the verdicts that became right and wrong; the JSON has the latter one by one.
    """
    import json

    from attribution.attributor import SURVIVAL
    from benchmarks.attribution_suites import IN_PROCESS, attributor, open_bench
    from benchmarks.triage import measure
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import run_view
    from experiments.running.parts import home_folder, open_access
    from tracing.llm.accounting.price import price_of

    config = config_from(None, given)
    systems = [config.system] if given.get("system") else list(IN_PROCESS)
    with (
        run_view() as view,
        open_access(config, home_folder(home)) as helper,
        open_bench(
            suite,
            config,
            systems,
            models=None,
            count=count,
            seed=seed,
            home=home_folder(home),
            progress=view.progress,
        ) as bench,
    ):
        first, helped = (attributor(method, bench, helper, seed=seed) for method in (SURVIVAL, second))
        result = measure(bench.suite, first, helped, helper, below=below, seed=seed, progress=view.progress)
    if target is not None:
        write_output(target, json.dumps(result, indent=2, ensure_ascii=False) + "\n", "--json")
    console = LiteralConsole()
    console.print(_table(result, second, priced=price_of(config.models.task) is not None))
    for line in bench.notes:
        console.print(line, soft_wrap=True)


def _table(result: dict[str, Any], second: str, *, priced: bool) -> Table:
    from experiments.display.tables import plain_table

    table = plain_table(f"survival, and {second} below a confidence; {result['n']} cases", gap=2)
    names = ("below", "asked", "error type", "operation", "helped", "hurt", "calls", "tokens")
    for name in (*names, *(["money"] if priced else [])):
        table.add_column(name, justify="right", no_wrap=True)
    for row in result["thresholds"]:
        low, high = row["eta_ci"]
        table.add_row(
            f"{row['below']:.3f}",
            f"{row['asked']:.0%}",
            f"{row['eta']:.3f} ({low:.2f}–{high:.2f})",
            "–" if row["oia"] is None else f"{row['oia']:.3f}",
            str(row["helped"]),
            str(row["hurt"]),
            f"{row['calls']:.2f}",
            f"{row['tokens']:,.0f}",
            *([f"{row['money']:.5f}"] if priced else []),
        )
    return table
