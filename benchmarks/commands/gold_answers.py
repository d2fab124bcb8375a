"""How many wrong gold answers attribution finds, and how many right ones it accuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.options import SuggestingChoice
from experiments.commands.output import write_output

if TYPE_CHECKING:
    from rich.table import Table


@click.command(
    "gold-answers",
    epilog="""\b
Examples:
  python -m benchmarks gold-answers
  python -m benchmarks gold-answers --data locomo10.json --json gold-answers.json
  python -m benchmarks gold-answers --data locomo10.json --part development
""",
)
@click.option("--data", type=click.Path(path_type=Path), help="File or folder of a data set [default: the sample].")
@click.option("--dataset", metavar="NAME", help="What --data is, where that is not recognised.")
@click.option(
    "--part",
    type=SuggestingChoice(["development", "held-out"]),
    default="held-out",
    show_default=True,
    help="Which conversations: rules and confidences were made on `development` of the sample and LoCoMo.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for what is spoiled, and for intervals.")
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
def gold_answers(data: Path | None, dataset: str | None, part: str, seed: int, target: Path | None) -> None:
    """Measure AnnotationError on gold answers that were spoiled in seven ways, among sound ones with wrong replies.

    An answer that nobody says, one of another speaker, another date, another event's, and questions whose premise is
    false: what nobody mentions, or the wrong person or time, where the reply says who or when it was. They are made by
    code, with a seed, from the annotation alone. No model is asked.
    """
    import json

    from attribution.methods import survival
    from benchmarks.gold_answers.measuring import by_attribution, measure, not_in_conversation, not_in_evidence
    from benchmarks.gold_answers.suite import annotated_cases, conversations_to_spoil, part_of
    from experiments.display.literal_console import LiteralConsole
    from tracing.errors import DataError

    conversations = part_of(
        conversations_to_spoil(data, dataset), "development" if part == "development" else "held-out"
    )
    cases = annotated_cases(conversations, seed=seed)
    if not any(case.spoiling for case in cases) or all(case.spoiling for case in cases):
        raise DataError(
            f"--part {part}: {len(conversations)} conversations give no gold answer to spoil beside a sound one; give "
            "questions with `answers` and `evidence`"
        )
    methods = {
        "survival": by_attribution(survival),
        "not in the cited turns": not_in_evidence,
        "nowhere in the conversation": not_in_conversation,
    }
    result: dict[str, Any] = {
        "part": part,
        "seed": seed,
        "conversations": [case.id for case in conversations],
        "methods": {name: measure(accuse, cases, seed=seed) for name, accuse in methods.items()},
    }
    if target is not None:
        write_output(target, json.dumps(result, indent=2, ensure_ascii=False) + "\n", "--json")
    LiteralConsole().print(_table(result))


def _table(result: dict[str, Any]) -> Table:
    from experiments.display.tables import plain_table

    figures = next(iter(result["methods"].values()))
    title = f"{result['part']}: {figures['spoiled']} spoiled gold answers, {figures['sound']} sound ones; two baselines"
    table = plain_table(title, gap=2)
    for name in ("", "found", "precision", "accused", "ms"):
        table.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for name, row in result["methods"].items():
        precision = "–" if row["precision"] is None else f"{row['precision']:.3f}"
        took = "–" if row["ms_per_case"] is None else f"{row['ms_per_case']:.1f}"
        accused = f"{row['accused_n']} ({row['accused']:.3f})"
        table.add_row(name, f"{row['found']:.3f}", precision, accused, took, style="bold")
        for kind, part in row["by_spoiling"].items():
            table.add_row(f"  {kind}, {part['n']}", f"{part['found']:.3f}", "", "", "")
    return table
