"""`memtune eval`: score prompts without optimizing them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from experiments.commands.options import config_from, home_option, setup_options


@click.command(
    "eval",
    epilog="""\b
Examples:
  memtune eval --prompts seed
  memtune eval --prompts .memtune/runs/RUN/prompts/champion --min-score 0.5
  memtune eval experiment.yaml --prompts exported/ --split validation
""",
)
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@click.option(
    "--prompts", required=True, metavar="PATH", help="Folder of NAME.txt prompts, or `seed` for the system's own."
)
@setup_options
@click.option("--split", type=click.Choice(["train", "validation", "test"]), default="test", show_default=True)
@click.option("--sealed", is_flag=True, help="Score the sealed conversations instead: once, for final prompts.")
@click.option("--min-score", type=float, metavar="S", help="Exit with code 1 when the score is below S.")
@home_option
@click.pass_context
def evaluate(
    context: click.Context,
    /,
    config: str | None,
    prompts: str,
    split: str,
    sealed: bool,
    min_score: float | None,
    home: Path | None,
    **given: Any,
) -> None:
    """Score the prompts of a folder on one split of a data set, and print the table.

    Exit code 0, or 1 when --min-score is not reached, or 2 when something is wrong: made for continuous integration.
    """
    from rich.console import Console
    from rich.table import Table

    from experiments.console import run_view, score_cells
    from experiments.folder import read_prompts
    from experiments.judging import calibrate_judge
    from experiments.loaders import load_dataset, load_sealed
    from experiments.wiring import home_folder, open_parts
    from optimizer.evaluation import score_of
    from tracing.systems.prompts import check_candidate

    settings = config_from(config, given)
    chosen = load_sealed(settings) if sealed else getattr(load_dataset(settings).splits, split)
    named = "sealed" if sealed else split
    with open_parts(settings, home_folder(home)) as parts, run_view() as view:
        specs = parts.system.prompts
        candidate = (
            {name: spec.text for name, spec in specs.items()}
            if prompts == "seed"
            else read_prompts(Path(prompts), specs)
        )
        check_candidate(specs, candidate)
        # Nothing is learned from it here, so that the judge may be calibrated on what it judges.
        calibrate_judge(parts.evaluator, candidate, chosen)
        outcomes = parts.evaluator.evaluate(
            candidate, chosen, progress=lambda done, total: view.progress(named, done, total)
        )
        score = score_of(outcomes, seed=settings.seed)
    table = Table()
    for name in ("split", settings.metric, "95 % interval", "EM", "F1", "contained", "questions", "conversations"):
        table.add_column(name, justify="left" if name == "split" else "right")
    table.add_row(named, *score_cells(score), str(len(chosen)))
    Console().print(table)
    if min_score is not None and score.score < min_score:
        click.echo(f"{score.score:.3f} is below --min-score {min_score:g}", err=True)
        context.exit(1)
