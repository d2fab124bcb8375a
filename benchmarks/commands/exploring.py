"""How well the agent finds in a trace what is asked for."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.options import config_from, home_option, setup_options
from experiments.commands.output import write_output

if TYPE_CHECKING:
    from rich.table import Table

SYSTEM = "fact-memory"
"""It extracts, decides, updates and deletes, so there is most to ask about."""


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks exploring
  python -m benchmarks exploring --model qwen2.5-coder-0.5b --json exploring.json
  python -m benchmarks exploring --model gpt-4.1-mini --base-url URL --system rag --questions 60
"""
)
@setup_options
@click.option(
    "--questions",
    "count",
    type=click.IntRange(min=1),
    default=45,
    show_default=True,
    metavar="N",
    help="At most N questions, the kinds in turn.",
)
@click.option(
    "--steps", type=click.IntRange(min=1), default=12, show_default=True, help="Tool calls the agent may make for each."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for the choice of questions, and intervals.")
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
@home_option
def exploring(count: int, steps: int, seed: int, target: Path | None, home: Path | None, **given: Any) -> None:
    """Measure the agent that explores traces, on planted questions that have a right answer in the graph.

    A memory system is recorded on the data with a scripted model, and asked about by the links of its graph: which
    operation made, read or deleted this, what was it before, what was retrieved. Three ways to answer are counted:
    `reachable`, whether the right tools show the answer; `search`, whether it is among the first three texts found for
    what the question quotes; and, with --model, `agent`, whether the agent cites it, with at most two ids beside it.
    """
    import json

    from benchmarks.exploring.measuring import measure, recorded
    from experiments.data.loaders import load_dataset
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import run_view
    from experiments.running.parts import home_folder, open_access
    from tracing.errors import DataError

    config = config_from(None, given)
    splits = load_dataset(config).splits

    with run_view() as view:
        graphs = recorded(given.get("system") or SYSTEM, splits.train, view.progress)
        with open_access(config, home_folder(home)) if given.get("model") else nullcontext() as model:
            result = measure(graphs, count, seed=seed, steps=steps, model=model, progress=view.progress)
    if not result["n"]:
        raise DataError("nothing can be asked about these traces; take another --system, or more conversations")
    if target is not None:
        write_output(target, json.dumps(result, indent=2, ensure_ascii=False) + "\n", "--json")
    console = LiteralConsole()
    console.print(_table(result))
    if result["agent_ci"]:
        low, high = result["agent_ci"]
        console.print(f"agent {result['agent']:.3f} (95 % {low:.2f} to {high:.2f})")
    if result["stopped"]:
        console.print(f"stopped: {result['stopped']}")


def _table(result: dict[str, Any]) -> Table:
    from experiments.display.tables import plain_table

    table = plain_table("planted questions", gap=2)
    for name in ("asked for", "n", "reachable", "search", "agent", "answered", "steps", "tokens"):
        table.add_column(name, justify="left" if name == "asked for" else "right", no_wrap=True)
    for kind, row in result["kinds"].items():
        table.add_row(kind, *_cells(row))
    table.add_row("all", *_cells(result), style="bold")
    return table


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    def figure(key: str, form: str) -> str:
        return "–" if row[key] is None else format(row[key], form)

    shares = (figure(key, ".2f") for key in ("reachable", "search", "agent", "answered"))
    return str(row["n"]), *shares, figure("steps", ".1f"), figure("tokens", ",.0f")
