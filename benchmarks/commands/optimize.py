"""Optimizers at equal budgets of model calls."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.options import config_from, home_option, setup_options
from experiments.commands.output import write_output, write_output_whole
from experiments.display.terminal import say

if TYPE_CHECKING:
    from benchmarks.optimize.figures import OptimizeFigures

CALLS = 1000
"""By default; a search of the fact memory then evaluates some forty conversations, or reruns a thousand inputs."""

CONVERSATIONS = 30
"""By default; with the embedded model on two cores a search then takes half an hour to an hour."""

ROUNDS = 50
"""More than a search makes before its calls end it, and few enough that one with nothing left to try soon ends."""


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks optimize --json optimize.json --table optimize.md --picture optimize.svg
  python -m benchmarks optimize --system rag --optimizer random --optimizer local-search --seeds 5 --calls 400
  python -m benchmarks optimize experiment.yaml --limit-conversations 24 --limit-questions 5 --folder compared
"""
)
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@setup_options
@click.option(
    "--optimizer",
    "names",
    multiple=True,
    metavar="NAME",
    help="What to compare, repeatable: baseline, random, reference, gepa, miprov2, local-search, no-blame, "
    "no-local-objectives [default: these eight], another optimizer, or your own as module:Object. The baseline is "
    "always compared.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=3, show_default=True, metavar="N", help="Runs of each contender."
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
    "--rounds",
    type=click.IntRange(min=1),
    default=ROUNDS,
    show_default=True,
    metavar="N",
    help="Rounds that each search may take; the calls should end it before.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the runs; the same one goes on where it was left [default: bench-optimize under the home].",
)
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="File for the figures.")
@click.option("--table", type=click.Path(path_type=Path, dir_okay=False), help="File for the tables, in Markdown.")
@click.option("--picture", "drawing", type=click.Path(path_type=Path, dir_okay=False), help="File for an SVG picture.")
@home_option
def optimize(
    config: str | None,
    names: tuple[str, ...],
    seeds: int,
    calls: int,
    rounds: int,
    folder: Path | None,
    file: Path | None,
    table: Path | None,
    drawing: Path | None,
    home: Path | None,
    **given: Any,
) -> None:
    """Compare optimizers by held-out scores, each with the same number of model calls, over several seeds.

    Every run is one of `memtune run` with a cache of its own, so that a search pays for each call that it needs. The
    fact memory and RAG are tuned, unless --system or the configuration names one, on 30 conversations, unless
    --limit-conversations or the configuration has another number. Killed or interrupted, the same command goes on:
    finished runs are kept, and the calls of an unfinished one are not paid again. Started several times, for an
    endpoint that can take it, the programs share the runs. --json is written after each run. A configuration with a
    `budget` is refused: --calls limits the searches.
    """
    from benchmarks.optimize.contenders import DEFAULT, contenders_of
    from benchmarks.optimize.measuring import SYSTEMS, Plan, measure_optimizers
    from benchmarks.optimize.picture import picture
    from benchmarks.optimize.table import markdown
    from experiments.data.loaders import load_dataset
    from experiments.display.tables import run_view
    from experiments.running.estimate import test_notes
    from experiments.running.parts import home_folder

    settings = config_from(config, given)
    if settings.limits.conversations is None:
        limits = settings.limits.model_copy(update={"conversations": CONVERSATIONS})
        settings = settings.model_copy(update={"limits": limits})
    dataset = load_dataset(settings)
    plan = Plan(
        settings,
        dataset,
        systems=(settings.system,) if "system" in settings.model_fields_set else SYSTEMS,
        contenders=contenders_of(names or DEFAULT),
        seeds=tuple(range(settings.seed, settings.seed + seeds)),
        calls=calls,
        rounds=rounds,
    )
    place = (folder or home_folder(home) / "bench-optimize").absolute()

    def save(figures: OptimizeFigures) -> None:
        if file is not None:
            write_output_whole(file, figures.model_dump_json(indent=2) + "\n", "--json")

    for note in (*dataset.notes, *test_notes(len(dataset.splits.test))):
        say(f"note: {note}", err=True)
    searches = sum(1 for _, contender, _ in plan.runs() if contender.optimizer is not None)
    say(f"{searches} searches make at most {searches * calls:,} calls; baselines and tests are not counted", err=True)
    try:
        with run_view() as view:
            figures = measure_optimizers(plan, place, progress=view.progress, finished=save)
    except KeyboardInterrupt:
        say(f"memtune: finished runs are kept in {place}; the same command goes on", err=True)
        raise KeyboardInterrupt from None
    if (others := figures.runs_planned - len(figures.runs)) > 0:
        say(f"note: other programs are still at {others} of the runs in {place}; the last to end has all", err=True)
    if table is not None:
        write_output(table, markdown(figures), "--table")
    if drawing is not None:
        write_output(drawing, picture(figures) or "", "--picture")
    _show(figures)


def _show(figures: OptimizeFigures) -> None:
    from benchmarks.optimize import table as words
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table

    console = LiteralConsole()
    for system in figures.systems:
        console.print(words.heading(figures, system), soft_wrap=True)
        for headings, cells in (
            (words.SCORES, words.score_cells),
            ((words.SCORES[0], *words.COSTS), lambda row: (row.contender, *words.cost_cells(row))),
        ):
            table = plain_table()
            for place, name in enumerate(headings):
                table.add_column(name, justify="right" if place else "left", no_wrap=bool(place))
            for contender in system.contenders:
                table.add_row(*cells(contender))
            console.print(table)
        for line in words.conclusions(system):
            console.print(line, soft_wrap=True)
        console.print("")
    for line in (words.NOTE, *words.notes(figures)):
        console.print(line, soft_wrap=True)
