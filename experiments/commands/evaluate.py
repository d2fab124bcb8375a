"""`memtune eval`: score prompts without optimizing them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from experiments.commands.options import config_from, home_option, setup_options
from experiments.display.terminal import say


def _a_score(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    # click's own range lets nan pass, and no score is below that.
    if value is not None and not 0 <= value <= 1:
        raise click.BadParameter(f"{value:g} is not a score; give a number between 0 and 1", context, option)
    return value


@click.command(
    "eval",
    epilog="""\b
Examples:
  memtune eval --prompts seed
  memtune eval --prompts .memtune/runs/RUN/prompts/champion --min-score 0.5
  memtune eval experiment.yaml --prompts exported/ --split validation
  memtune eval experiment.yaml --prompts seed --repeat 5
""",
)
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@click.option(
    "--prompts", required=True, metavar="PATH", help="Folder of NAME.txt prompts, or `seed` for the system's own."
)
@setup_options
@click.option("--split", type=click.Choice(["train", "validation", "test"]), default="test", show_default=True)
@click.option("--sealed", is_flag=True, help="Score the sealed conversations instead: once, for final prompts.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    metavar="K",
    help="Ask everything K times and report the noise floor: how far scores of the same prompts differ.",
)
@click.option(
    "--min-score",
    type=float,
    callback=_a_score,
    metavar="S",
    help="Exit with code 1 if the score is below S (0 to 1).",
)
@home_option
@click.pass_context
def evaluate(
    context: click.Context,
    /,
    config: str | None,
    prompts: str,
    split: str,
    sealed: bool,
    repeat: int,
    min_score: float | None,
    home: Path | None,
    **given: Any,
) -> None:
    """Score the prompts of a folder on one split of a data set, and print the table.

    For continuous integration: exit code 0, 1 if --min-score is not reached, 2 on an error.
    """
    from experiments.data.loaders import load_dataset, load_sealed
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view, score_cells
    from experiments.experiment.judging import calibrate_judge
    from experiments.experiment.wiring import home_folder, open_parts
    from experiments.runs.folder import read_prompts
    from optimizer.evaluation.evaluator import score_of
    from optimizer.evaluation.noise import noise_floor
    from tracing.systems.prompts import check_candidate, seed_candidate

    settings = config_from(config, given)
    chosen = load_sealed(settings) if sealed else getattr(load_dataset(settings).splits, split)
    named = "sealed" if sealed else split
    with open_parts(settings, home_folder(home)) as parts, run_view() as view:
        specs = parts.system.prompts
        candidate = seed_candidate(specs) if prompts == "seed" else read_prompts(Path(prompts), specs)
        check_candidate(specs, candidate)
        parts.access.check()
        # Nothing is learned from it here, so the judge may be calibrated on what it judges.
        calibrate_judge(parts.evaluator, candidate, chosen, progress=partial(view.progress, "calibration of the judge"))
        repetitions = []
        for number in range(repeat):
            phase = named if repeat == 1 else f"{named}, {number + 1} of {repeat}"
            repetitions.append(
                parts.evaluator.repeated(number).evaluate(
                    candidate,
                    chosen,
                    progress=partial(view.progress, phase),
                )
            )
        scores = [score_of(outcomes, seed=settings.seed) for outcomes in repetitions]
    table = plain_table()
    for name in ("split", settings.metric, "95 % interval", "EM", "F1", "contained", "n", "conversations"):
        table.add_column(name, justify="left" if name == "split" else "right", no_wrap=True)
    for score in scores:
        table.add_row(named, *score_cells(score), str(len(chosen)))
    LiteralConsole().print(table)
    reached = sum(score.score for score in scores) / repeat
    if repeat > 1:
        floor = noise_floor(repetitions)
        say(
            f"mean of {repeat}: {floor.mean:.3f}, standard deviation {floor.deviation:.3f}; "
            f"{floor.changed} of {floor.questions} questions were not judged the same every time"
        )
        say(f"noise floor: a difference of up to {floor.noise:.3f} between two scores means nothing (95 %)")
    if min_score is not None and reached < min_score:
        say(f"{reached:.3f} is below --min-score {min_score:g}", err=True)
        context.exit(1)
