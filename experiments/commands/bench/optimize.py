"""`memtune bench optimize`: a run of each optimizer with the same number of model calls, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import config_from, dataset_from, home_option, setup_options
from experiments.commands.run_history import show_comparison


@click.command(epilog=examples("bench optimize"))
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@setup_options
@click.option(
    "--optimizer",
    "names",
    multiple=True,
    required=True,
    metavar="NAME",
    help="What to compare, repeatable: as --optimizer of `memtune run`.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Runs of each optimizer."
)
@click.option(
    "--calls",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Model calls that each search may make; baselines and test do not count.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the runs; the same one goes on where it was left [default: bench-optimize under the home].",
)
@home_option
def optimize(
    config: str | None,
    names: tuple[str, ...],
    seeds: int,
    calls: int,
    folder: Path | None,
    home: Path | None,
    **given: Any,
) -> None:
    """Compare optimizers on your own data, each with the same number of model calls.

    Every run is one of `memtune run` with a cache of its own, so that a search pays for each call that it needs. Killed
    or interrupted, the same command goes on: finished runs are kept, and the calls of an unfinished one are not paid
    again. `memtune compare` with the folders of the runs shows which questions they answer differently.
    """
    from experiments.display.tables import run_view
    from experiments.running.parts import home_folder
    from experiments.running.run import run_experiment
    from experiments.runs.comparison import compare
    from experiments.runs.folder import RunFolder
    from optimizer.evaluation.file_names import file_name

    settings = [config_from(config, {**given, "optimizer": name}) for name in names]
    dataset = dataset_from(settings[0])
    place = (folder or home_folder(home) / "bench-optimize").absolute()
    runs: list[RunFolder] = []
    for offset in range(seeds):
        for name, chosen in zip(names, settings, strict=True):
            seed = chosen.seed + offset
            own = place / file_name(name) / f"seed-{seed}"
            runs.append(run := RunFolder(own / "run"))
            begun = run.path.exists()
            if begun and run.has_summary and run.summary().finished:
                continue
            search = chosen.search.model_copy(update={"calls": calls})
            with run_view() as view:
                run_experiment(
                    chosen.model_copy(update={"seed": seed, "search": search}),
                    dataset,
                    own / "home",
                    out=None if begun else run.path,
                    resume=run if begun else None,
                    observers=(view,),
                )
    show_comparison(
        compare(*runs), [f"{name}, {run.path.parent.name}" for run, name in zip(runs, names * seeds, strict=True)]
    )
