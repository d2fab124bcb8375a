"""Whether blame pays: planted flaws, and how soon searches win back what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.options import concurrency_option, config_from, data_options, home_option, task_model_options
from experiments.commands.output import write_output, write_output_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.blame.figures import BlameFigures
    from benchmarks.blame.one_search import Search
    from experiments.runs.config import RunConfig

CALLS = 1000

CONVERSATIONS = 30
"""With a real model, as in `python -m benchmarks optimize`."""

SEEDS, FAST_SEEDS = 14, 2
"""Searches of each contender for each prompt; by default two for each flaw."""


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks blame --json blame.json
  python -m benchmarks blame --fast --system evermemos --contender blame --contender miprov2
  python -m benchmarks blame --seeds 200 --kept searches.jsonl --json blame.json
  python -m benchmarks blame --model qwen2.5-coder-0.5b --seeds 1 --folder planted --json planted.json
"""
)
@click.option("--system", "systems", multiple=True, metavar="NAME", help="Only this system, repeatable.")
@click.option("--contender", "contenders", multiple=True, metavar="NAME", help="Only this contender, repeatable.")
@click.option(
    "--seeds", type=click.IntRange(min=1), default=SEEDS, show_default=True, metavar="N", help="Searches a prompt."
)
@click.option("--fast", is_flag=True, help=f"Only {FAST_SEEDS} searches a prompt, of the flaws in turn.")
@click.option(
    "--first-seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="The first seed."
)
@click.option(
    "--calls",
    type=click.IntRange(min=1),
    default=CALLS,
    show_default=True,
    metavar="N",
    help="Model calls that each search may make; baselines and test do not count.",
)
@click.option(
    "--processes", type=click.IntRange(min=1), default=2, show_default=True, metavar="N", help="Searches at a time."
)
@click.option(
    "--kept",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Keep each finished search here; the same command goes on.",
)
@data_options
@task_model_options
@concurrency_option
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --model, folder of the runs; the same one goes on [default: bench-blame under the home].",
)
@home_option
@click.option("--json", "target", type=click.Path(path_type=Path, dir_okay=False), help="File for the figures.")
def blame(
    systems: Sequence[str],
    contenders: Sequence[str],
    seeds: int,
    fast: bool,
    first_seed: int,
    calls: int,
    processes: int,
    kept: Path | None,
    folder: Path | None,
    home: Path | None,
    target: Path | None,
    **given: Any,
) -> None:
    """Spoil one prompt of a system in a way people do, and measure how soon searches win back what that costs.

    Optimizers do not know which prompt it is. The memory systems are pipelines with the steps of real ones, the model
    is a script whose skill depends on what prompts ask for, and so is the author, the same for all. Rules:
    benchmarks/blame/rules.toml.

    With --model the real fact memory is tuned with that model, on six flaws of its own prompts, by runs as of
    `python -m benchmarks optimize`; then --system, --fast, --processes and --kept do not
    apply, and only then the options of data, model and folder do.
    """
    if given["model"] is not None:
        numbers = range(first_seed, first_seed + seeds)
        _measure_real(config_from(None, given), home, folder, contenders, numbers, calls, target)
        return

    from benchmarks.blame.contenders import CONTENDERS
    from benchmarks.blame.figures import figures_of
    from benchmarks.blame.measuring import searched, tasks_of
    from benchmarks.blame.pipelines import PIPELINES
    from experiments.display.tables import run_view
    from tracing.errors import ConfigError
    from tracing.suggestions import unknown_names

    for option, names, existing in (("--system", systems, PIPELINES), ("--contender", contenders, CONTENDERS)):
        if unknown := [name for name in names if name not in existing]:
            raise ConfigError(
                f"{option}: there is no {unknown_names(unknown, existing)}; choose from {', '.join(existing)}"
            )
    systems, contenders = systems or list(PIPELINES), contenders or list(CONTENDERS)
    tasks = list(tasks_of(systems, contenders, FAST_SEEDS if fast else seeds, calls, first_seed))

    def save(searches: Sequence[Search]) -> None:
        if target is not None:
            write_output_whole(target, figures_of(searches, calls).model_dump_json(indent=2) + "\n", "--json")

    with run_view() as view:
        searches = searched(tasks, kept, processes, progress=view.progress, finished=save)
    figures = figures_of(searches, calls)
    if target is not None:
        write_output(target, figures.model_dump_json(indent=2) + "\n", "--json")
    _show(figures)


def _measure_real(
    config: RunConfig,
    home: Path | None,
    folder: Path | None,
    contenders: Sequence[str],
    seeds: Sequence[int],
    calls: int,
    target: Path | None,
) -> None:
    from benchmarks.blame.real_model import CONTENDERS, RealFigures, measure_real
    from experiments.data.loaders import load_dataset
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view
    from experiments.running.parts import home_folder

    limits = config.limits.model_copy(update={"conversations": config.limits.conversations or CONVERSATIONS})
    config = config.model_copy(update={"limits": limits})
    place = (folder or home_folder(home) / "bench-blame").absolute()

    def save(figures: RealFigures) -> None:
        if target is not None:
            write_output_whole(target, figures.model_dump_json(indent=2) + "\n", "--json")

    with run_view() as view:
        figures = measure_real(
            config,
            load_dataset(config),
            place,
            contenders or list(CONTENDERS),
            seeds=seeds,
            calls=calls,
            progress=view.progress,
            finished=save,
        )
    table = plain_table()
    for heading in ("flaw", "prompt", "contender", "seed", "spoiled", "shipped", "champion", "won back", "calls"):
        table.add_column(heading, justify="left" if heading in ("flaw", "prompt", "contender") else "right")
    for run in figures.runs:
        table.add_row(
            run.flaw,
            run.prompt,
            run.contender,
            str(run.seed),
            *(f"{score:.3f}" for score in (run.spoiled, run.shipped, run.score)),
            "–" if run.won_back is None else f"{run.won_back:.2f}",
            "–" if run.calls_until_enough is None else str(run.calls_until_enough),
        )
    LiteralConsole().print(table)


def _show(figures: BlameFigures) -> None:
    from benchmarks.blame.figures import ALL, LOOKS
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table

    console = LiteralConsole()
    for system in dict.fromkeys(cell.system for cell in figures.cells):
        console.print(f"{system}: each prompt spoiled in turn")
        table = plain_table()
        for heading in ("contender", "searches", "calls until 90 %", "95 %", "median", "reached"):
            table.add_column(heading, justify="right" if heading != "contender" else "left", no_wrap=True)
        for look in LOOKS:
            table.add_column(f"at {look:,}", justify="right")
        for cell in figures.cells:
            if cell.system == system and cell.prompt == ALL:
                low, high = cell.calls.ci
                table.add_row(
                    cell.contender,
                    str(cell.searches),
                    f"{cell.calls.value:.0f}",
                    f"{low:.0f}–{high:.0f}",
                    "–" if cell.median_calls is None else str(cell.median_calls),
                    f"{cell.enough.value:.2f}",
                    *(f"{cell.won_back[look].value:.2f}" for look in LOOKS),
                )
        console.print(table)
        for ratio in figures.ratios:
            if ratio.system == system:
                (low, high), prompt = ratio.ratio.ci, "all prompts" if ratio.prompt == ALL else ratio.prompt
                console.print(
                    f"{prompt}: {ratio.contender} needs {ratio.ratio.value:.2f} ({low:.2f}–{high:.2f}) of the calls of "
                    f"{ratio.other}",
                    soft_wrap=True,
                )
        console.print("")
