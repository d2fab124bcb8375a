"""How often a method names the operation at fault."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.commands.suite_options import suite_options
from experiments.commands.bench import matcher_option
from experiments.commands.options import config_from
from experiments.commands.output import write_output

if TYPE_CHECKING:
    from rich.table import Table

    from tracing.llm.access import ModelAccess


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks attribution --suite injected --method survival --json survival.json
  python -m benchmarks attribution --suite injected-hard --method survival --system rag
  python -m benchmarks attribution --suite injected --method replay --system fact-memory --cases 300 --seed 1
  python -m benchmarks attribution --suite injected --method replay --system mem0 --cases 40
  python -m benchmarks attribution --suite injected --method replay --model qwen2.5-coder-0.5b --limit-conversations 6
  python -m benchmarks attribution --suite annotated/ --method survival --json report.json
  python -m benchmarks attribution --suite annotated/ --method survival --complaints
  python -m benchmarks attribution --suite annotated/ --method survival --matcher llm --model NAME --base-url URL
"""
)
@click.option(
    "--suite",
    required=True,
    metavar="PATH|injected|injected-hard|memtracebench",
    help="An annotated graph or a folder of them; `injected`: passed cases with injected faults; `injected-hard`: the "
    "same as foreign traces or with missing parts; `memtracebench`: downloaded once from its hub ($HF_ENDPOINT).",
)
@click.option(
    "--method",
    required=True,
    metavar="NAME",
    help="What to measure: an attribution method (your own as module:Object), or one of the controls "
    "replay, majority and random.",
)
@matcher_option
@click.option(
    "--complaints",
    is_flag=True,
    help="Give the method only what a user knows who says that a reply is wrong: no right answer, no evidence.",
)
@suite_options
def attribution(
    suite: str,
    method: str,
    matcher: str,
    complaints: bool,
    count: int,
    seed: int,
    target: Path | None,
    home: Path | None,
    **given: Any,
) -> None:
    """Measure an attribution method on wrong answers whose decisive operation is known.

    `injected` makes its own labelled cases: it runs the systems that need no library of their own, or the one that
    --system names, on the data, injects a fault into a passed case, and keeps it if the answer becomes wrong. Faults
    are aimed by the data's annotations and by lineage, never by attribution's matching of texts. Without --model the
    system uses a scripted model on loopback that makes no mistakes. For a matcher or method which asks a model,
    --model names that one, and the system's stays scripted.
    """
    import json

    from attribution.survival.matching.matcher import WORDS
    from benchmarks.attribution_measuring import needs_models, summary
    from benchmarks.attribution_suites import CONTROLS, IN_PROCESS, attributor, measure, open_bench
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import run_view
    from experiments.running.parts import home_folder, open_access

    config = config_from(None, given)
    systems = [config.system] if given.get("system") else list(IN_PROCESS)
    asks = method not in CONTROLS and needs_models(method)
    helped = asks or matcher != WORDS

    def models() -> AbstractContextManager[ModelAccess]:
        return open_access(config, home_folder(home), surely=asks or bool(given.get("model")))

    with (
        run_view() as view,
        open_bench(
            suite,
            config,
            systems,
            models=models if given.get("model") and not helped else None,
            count=count,
            seed=seed,
            home=home_folder(home),
            progress=view.progress,
        ) as bench,
        models() if helped else nullcontext() as helper,
    ):
        bench = bench.as_complaints() if complaints else bench
        make = attributor(method, bench, helper, seed=seed, matcher=matcher)
        result = measure(bench, make, helper, seed=seed, progress=view.progress)
    if target is not None:
        write_output(target, json.dumps(result, indent=2, ensure_ascii=False) + "\n", "--json")
    console = LiteralConsole()
    console.print(_table(result, bench.suite.name, method))
    cross_fitted = result["ece_cross_fitted"]
    calibrated = [] if cross_fitted is None else [f"calibration error cross-fitted {cross_fitted:.3f}"]
    for line in (*bench.notes, *summary(result), *calibrated):
        console.print(line, soft_wrap=True)


def _table(result: dict[str, Any], suite: str, method: str) -> Table:
    """Accuracy by system, kind of fault and condition, if faults were injected, and by error type."""
    from benchmarks.attribution_measuring import accuracy_cells, accuracy_table, add_error_types
    from benchmarks.injected_faults.kinds import KINDS

    table = accuracy_table(f"{method} on {suite}")
    for system, own in result["by_system"].items():
        for fault in [fault for fault in KINDS if fault in own["by_fault"]]:
            table.add_row(fault, KINDS[fault].nature, *accuracy_cells(own["by_fault"][fault]))
        for nature, row in own["by_nature"].items():
            table.add_row(f"{system}, all", nature, *accuracy_cells(row), style="italic")
        table.add_row(f"{system}, all", "", *accuracy_cells(own), style="bold", end_section=True)
    for condition, row in result["by_condition"].items():
        table.add_row(condition, "", *accuracy_cells(row))
    if result["by_condition"]:
        table.add_section()
    add_error_types(table, result)
    return table
