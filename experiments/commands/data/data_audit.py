"""`memtune data audit`: how much each operation could gain on a data set, and which of its gold answers look wrong."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import (
    SuggestingChoice,
    config_from,
    dataset_from,
    home_option,
    setup_options,
)
from experiments.commands.output import write_output

if TYPE_CHECKING:
    from experiments.runs.config import RunConfig

_MOST_TURNS, _LONGEST_TURN = 4, 200
"""How much is shown of what speaks against a gold answer: turns, and characters of each."""


@click.command(epilog=examples("data audit"))
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@setup_options
@click.option(
    "--split",
    type=SuggestingChoice(["train", "validation", "test", "all"]),
    help="The conversations to audit [default: train; with --gold, every conversation].",
)
@click.option(
    "--gold",
    is_flag=True,
    help="Only list suspicious gold answers with the turns that speak against them; no model, no run.",
)
@click.option(
    "--json",
    "out",
    type=click.Path(path_type=Path),
    help="Also write the rungs to this file; `memtune diagnose` shows them from ladder.json in a run's folder. With "
    "--gold, the suspicious gold answers.",
)
@home_option
def audit(
    config: str | None, split: str | None, out: Path | None, home: Path | None, *, gold: bool, **options: Any
) -> None:
    """Print the oracle ladder: how well questions are answered from gold context, from gold facts, and by the pipeline.

    The step from one rung to the next is what the operations between them could gain at most. With --gold, list the
    gold answers that the conversation speaks against: nobody says them, another speaker does, the dated turns give
    another time, the cited turn is about something else, or the question takes for granted what was not.
    """
    settings = config_from(config, options)
    if gold:
        _list_suspicious(settings, split, out)
    else:
        _climb(settings, split or "train", out, home)


def _list_suspicious(settings: RunConfig, split: str | None, out: Path | None) -> None:
    """Print the suspicious gold answers, the surest first."""
    import json
    from dataclasses import asdict

    from attribution.gold_answers.answer_audit import Audit
    from experiments.data.dataset_reader import Reading
    from experiments.data.loaders import read_dataset
    from experiments.display.literal_console import LiteralConsole
    from tracing.recording.redaction import excerpt

    if split in (None, "all"):
        conversations = [
            conversation for conversation in read_dataset(settings, Reading()) if conversation.split != "sealed"
        ]
    else:
        conversations = list(getattr(dataset_from(settings).splits, str(split)))
    suspicions = [
        (conversation, suspicion) for conversation in conversations for suspicion in Audit(conversation).suspicions()
    ]
    suspicions.sort(key=lambda pair: -pair[1].confidence)
    rows = [{"conversation": conversation.id, **asdict(suspicion)} for conversation, suspicion in suspicions]
    if out is not None:
        write_output(out, json.dumps(rows, indent=2, ensure_ascii=False) + "\n", "--json")
    console = LiteralConsole()
    question_count = sum(len(conversation.questions) for conversation in conversations)
    console.print(f"{settings.dataset}: {len(suspicions)} of {question_count} gold answers are suspicious")
    for conversation, suspicion in suspicions:
        turns = {turn.id: turn for turn in conversation.turns()}
        question = next(candidate for candidate in conversation.questions if candidate.id == suspicion.question)
        console.print()
        console.print(
            f"{question.id} ({conversation.id}), {suspicion.doubt}, {suspicion.confidence:.2f}: {question.question}"
        )
        console.print(f"  gold: {question.answers[0]}")
        console.print(f"  {suspicion.reason}", soft_wrap=True)
        for turn in suspicion.turns[:_MOST_TURNS]:
            console.print(f"  {turn} {excerpt(turns[turn].spoken, _LONGEST_TURN)}", soft_wrap=True)


def _climb(settings: RunConfig, split: str, out: Path | None, home: Path | None) -> None:
    """Print the rungs of the oracle ladder."""
    from rich.table import Table

    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import run_view
    from experiments.running.judging import calibrate_judge
    from experiments.running.parts import check_endpoints, home_folder, open_evaluator
    from experiments.runs.intervals import interval_text
    from experiments.runs.measurement_files import ladder_json
    from optimizer.evaluation.ladder import attainable
    from optimizer.evaluation.ladder import audit as climb
    from tracing.systems.prompts import baseline_candidate

    splits = dataset_from(settings).splits
    conversations = getattr(splits, split, ()) or (*splits.train, *splits.validation, *splits.test)
    with open_evaluator(settings, home_folder(home)) as evaluator, run_view() as view:
        check_endpoints(settings, evaluator.access)
        calibrate_judge(evaluator, baseline_candidate(evaluator.system.prompts), conversations)
        rungs = climb(evaluator, conversations, progress=partial(view.progress, "baseline pipeline"))
    if out is not None:
        write_output(out, ladder_json(rungs), "--json")
    table = Table()
    for name in ("rung", settings.metric, "95 % interval", "questions"):
        table.add_column(name, justify="left" if name == "rung" else "right")
    for rung in rungs:
        table.add_row(rung.name, f"{rung.score:.3f}", interval_text(rung.ci), str(rung.n))
    gains = ", ".join(f"{stage} {gain:+.3f}" for stage, gain in attainable(rungs).items())
    console = LiteralConsole()
    console.print(f"{settings.system} on {settings.dataset} ({split}), {settings.models.task.model}")
    console.print(table)
    console.print(f"attainable by a perfect stage after perfect stages: {gains}")
