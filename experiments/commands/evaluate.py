"""`memtune eval`: score prompts without optimizing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.earlier_names import current_side
from experiments.commands.examples import examples
from experiments.commands.options import (
    SuggestingChoice,
    config_from,
    dataset_from,
    home_option,
    setup_options,
)
from experiments.commands.output import write_output_whole
from experiments.display.terminal import say
from tracing.errors import RunError

if TYPE_CHECKING:
    from experiments.runs.config import RunConfig
    from experiments.runs.measurement_files import Evaluation, EvaluationDifference
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.evaluation.scores import Score
    from tracing.systems.prompts import Candidate, PromptSpec


def _a_score(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    # click's own range lets nan pass, and no score is below that.
    if value is not None and not 0 <= value <= 1:
        raise click.BadParameter(f"{value:g} is not a score; give a number between 0 and 1", context, option)
    return value


@click.command("eval", epilog=examples("eval"))
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@click.option(
    "--prompts",
    required=True,
    metavar="PATH|RUN",
    callback=current_side,
    help="Folder of NAME.txt prompts, a run (its champion), or `baseline` for the system's own.",
)
@click.option(
    "--against",
    metavar="PATH|RUN",
    callback=current_side,
    help="Score these prompts too and report the difference with its interval, as for a second model.",
)
@setup_options
@click.option(
    "--split",
    type=SuggestingChoice(["train", "validation", "test"]),
    default="test",
    show_default=True,
    help="The conversations to score.",
)
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
@click.option(
    "--fail-on",
    type=SuggestingChoice(["regressed", "not-improved"]),
    help="Exit with code 1 if --prompts are shown to be worse than --against, or are not shown to be better.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write scores, difference and which answers were right as JSON.",
)
@home_option
def evaluate(
    config: str | None,
    prompts: str,
    against: str | None,
    split: str,
    sealed: bool,
    repeat: int,
    min_score: float | None,
    fail_on: str | None,
    json_file: Path | None,
    home: Path | None,
    **options: Any,
) -> int:
    """Score prompts on one split of a data set, and print the table.

    Without CONFIG.yaml, the settings are those of the run that --prompts names, or --against, or else the defaults.

    With --against, a second line has the score of those prompts, and the difference is tested with the conversation as
    unit: whether a gain transfers to another model takes `--prompts RUN --against baseline --model OTHER`.

    For continuous integration: exit code 0, 1 if --min-score is not reached or what --fail-on names happened, 2 on an
    error. docs/guide.md has a workflow for GitHub Actions.
    """
    if fail_on is not None and against is None:
        raise click.UsageError("--fail-on is about a difference; add --against PROMPTS, such as `--against baseline`")
    limits = [name for name in ("conversations", "sessions", "questions") if options[f"limit_{name}"] is not None]
    if sealed and limits:
        raise click.UsageError(f"--sealed scores all of the sealed conversations; leave out --limit-{limits[0]}")
    from attribution.judging.words import refused_for_form
    from experiments.data.loaders import load_sealed
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import difference_line, plain_table, run_view, score_cells
    from experiments.running.judging import calibrate_judge
    from experiments.running.parts import check_endpoints, home_folder, open_evaluator
    from experiments.runs.measurement_files import EvaluationDifference
    from optimizer.evaluation.evaluator import score_of
    from optimizer.evaluation.noise import noise_floor
    from optimizer.evaluation.unusable_replies import UnusableReplies
    from optimizer.gating.verdict import verdict_over
    from tracing.systems.baseline import check_baseline

    settings = config_from(
        config or _config_of(prompts, home) or _config_of(against, home), options, typed=config is not None
    )
    chosen = load_sealed(settings) if sealed else getattr(dataset_from(settings).splits, split)
    named = "sealed" if sealed else split
    with open_evaluator(settings, home_folder(home)) as evaluator, run_view() as view:
        specs = evaluator.system.prompts
        sides = {name: _candidate(name, specs, home) for name in dict.fromkeys((prompts, against)) if name is not None}
        for candidate in sides.values():
            check_baseline(specs, candidate)
        check_endpoints(settings, evaluator.access)
        view.watch(evaluator.access.budget)
        # Nothing is learned from it here, so the judge may be calibrated on what it judges.
        calibrate_judge(evaluator, sides[prompts], chosen, progress=partial(view.progress, "calibration of the judge"))
        outcomes_of_side: dict[str, list[list[Outcome]]] = {}
        for side, candidate in sides.items():
            whose = f"{named}, {side}" if against else named
            for number in range(repeat):
                phase = whose if repeat == 1 else f"{whose}, {number + 1} of {repeat}"
                outcomes = evaluator.repeated(number).evaluate(
                    candidate, chosen, progress=partial(view.progress, phase)
                )
                outcomes_of_side.setdefault(side, []).append(outcomes)
        scores = {side: [score_of(outcomes) for outcomes in own] for side, own in outcomes_of_side.items()}
    repetitions = outcomes_of_side[prompts]
    table = plain_table()
    first = ("prompts", "split") if against else ("split",)
    for name in (*first, settings.metric, "95 % interval", "EM", "F1", "contained", "n", "conversations"):
        table.add_column(name, justify="left" if name in first else "right", no_wrap=True)
    for side, own in scores.items():
        for score in own:
            table.add_row(*((side, named) if against else (named,)), *score_cells(score), str(len(chosen)))
    data = settings.dataset if settings.data is None else f"{settings.dataset} {settings.data}"
    say(f"{settings.system} on {data}, {settings.models.task.model}")
    LiteralConsole().print(table)
    for side, own in scores.items():
        form_note = refused_for_form(settings.metric, own[0].score, own[0].contains)
        if form_note is not None:
            say(f"note: {f'{side}: ' if against else ''}{form_note}")
    unusable = UnusableReplies.of(evaluator.access.meter)
    if unusable.sentence is not None:
        say(f"note: {unusable.warning() or unusable.sentence}")
    difference = None
    if against is not None:
        units = [_by_conversation(outcomes_of_side[side]) for side in (prompts, against)]
        question_count = sum(len(conversation.questions) for conversation in chosen)
        verdict = verdict_over([new - old for new, old in zip(*units, strict=True)], question_count, seed=settings.seed)
        difference = EvaluationDifference(
            against=against,
            verdict=verdict.verdict,
            delta=verdict.delta,
            delta_ci=verdict.delta_ci,
            p_value=verdict.p_value,
            conversations=len(chosen),
        )
        LiteralConsole().print(difference_line(verdict, len(chosen)))
    reached = sum(score.score for score in scores[prompts]) / repeat
    if repeat > 1:
        floor = noise_floor(repetitions)
        say(
            f"mean of {repeat}: {floor.mean:.3f}, standard deviation {floor.deviation:.3f}; "
            f"{floor.changed} of {floor.questions} questions were not judged the same every time"
        )
        say(f"noise floor: a difference of up to {floor.noise:.3f} between two scores means nothing (95 %)")
    if json_file is not None:
        firsts = {side: own[0] for side, own in outcomes_of_side.items()}
        evaluation = _evaluation(settings, named, scores, firsts, difference)
        write_output_whole(json_file, evaluation.model_dump_json(indent=1) + "\n", "--json")
    failed = False
    if min_score is not None and reached < min_score:
        say(f"{reached:.3f} is below --min-score {min_score:g}", err=True)
        failed = True
    if difference is not None and difference.verdict in _FAILING.get(fail_on, ()):
        say(f"--fail-on {fail_on}: {prompts} against {against} is {difference.verdict}", err=True)
        failed = True
    return 1 if failed else 0


_FAILING: Mapping[str | None, tuple[str, ...]] = {
    "regressed": ("regressed",),
    "not-improved": ("regressed", "inconclusive"),
}
"""Verdicts that each choice of --fail-on is about."""


def _evaluation(
    settings: RunConfig,
    split: str,
    scores: Mapping[str, Sequence[Score]],
    outcomes: Mapping[str, Sequence[Outcome]],
    difference: EvaluationDifference | None,
) -> Evaluation:
    from experiments.runs.measurement_files import EvaluatedPrompts, Evaluation

    return Evaluation(
        system=settings.system,
        dataset=settings.dataset,
        model=settings.models.task.model,
        metric=settings.metric,
        split=split,
        evaluated=tuple(
            EvaluatedPrompts(
                prompts=side,
                mean=sum(score.score for score in own) / len(own),
                scores=tuple(own),
                answers={
                    outcome.conversation.id: "".join("+" if case.passed else "-" for case in outcome.cases)
                    for outcome in outcomes[side]
                    if outcome.tainted is None
                },
            )
            for side, own in scores.items()
        ),
        difference=difference,
    )


def _config_of(named: str | None, home: Path | None) -> str | None:
    """The configuration of the run that is named; None if it is none."""
    from experiments.running.parts import home_path
    from experiments.runs.folder import BASELINE, CONFIG, RunFolder

    if named in (None, BASELINE) or _holds_prompts(Path(named)):
        return None
    try:
        return str(RunFolder.find(home_path(home), named, finished=True).path / CONFIG)
    except RunError:
        return None  # `_candidate` says what is missing, once the system's prompts are known


def _holds_prompts(folder: Path) -> bool:
    return folder.is_dir() and any(folder.glob("*.txt"))


def _candidate(named: str, specs: Mapping[str, PromptSpec], home: Path | None) -> Candidate:
    """The system's own prompts (`baseline`), those of a folder, or a run's champion."""
    from experiments.running.parts import home_path
    from experiments.runs.folder import BASELINE, CHAMPION, SUMMARY, RunFolder, read_prompts
    from tracing.systems.prompts import baseline_candidate

    if named == BASELINE:
        return baseline_candidate(specs)
    if _holds_prompts(Path(named)):
        return read_prompts(Path(named), specs)
    try:
        run = RunFolder.find(home_path(home), named, finished=True)
    except RunError as error:
        raise RunError(f"{error}; a folder of prompts has a file NAME.txt for each ({', '.join(specs)})") from None
    tuned = run.summary().settings if (run.path / SUMMARY).is_file() else {}
    if tuned:
        values = ", ".join(f"{name}: {change.after}" for name, change in tuned.items())
        warning = f"warning: {run.id} tuned settings too; for its champion give system_settings {{{values}}}"
        say(f"{warning} in the configuration", err=True)
    return read_prompts(run.prompts_folder(CHAMPION), specs)


def _by_conversation(repetitions: Sequence[Sequence[Outcome]]) -> list[float]:
    """The mean score of each conversation over repetitions."""
    return [sum(outcome.score for outcome in own) / len(own) for own in zip(*repetitions, strict=True)]
