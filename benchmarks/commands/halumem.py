"""Labels of HaluMem's evaluation beside the local objective of extraction and beside attribution."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.output import write_output


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks halumem --run halumem/
  python -m benchmarks halumem --run halumem/ --json halumem.json
"""
)
@click.option(
    "--run",
    "folder",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Rows of HaluMem (*.jsonl), with *_generation.jsonl and *_detailed.json of its evaluation of a system.",
)
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
def halumem(folder: Path, target: Path | None) -> None:
    """Measure extraction's local objective and survival on a run that HaluMem's evaluation labelled.

    The labels are a model's. Beside them, attribution is scored where the run's own record tells what is due: nothing
    was stored in the sessions of the evidence, or no session tells the answer. No model is asked.
    """
    import json
    from dataclasses import asdict

    from benchmarks.halumem import HaluMemRun, attribution_figures, extraction_figures
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table

    run = HaluMemRun.read(folder)
    extraction, attributed = extraction_figures(run), attribution_figures(run)
    if target is not None:
        figures = {
            "extraction": [asdict(row) for row in extraction],
            "attribution": [asdict(row) | {"share": row.share} for row in attributed],
        }
        write_output(target, json.dumps(figures, indent=2) + "\n", "--json")
    objective = plain_table("the local objective of extraction, beside labels of integrity", gap=2)
    for name in ("label", "n", "agreement", "kappa", "AUC", "labelled so, but not a word of it in a memory"):
        objective.add_column(name, justify="left" if name == "label" else "right")
    for row in extraction:
        if row.agreement is not None:
            numbers = (row.agreement.accuracy, row.agreement.kappa, row.agreement.auc)
            cells = ["-" if number is None else f"{number:.3f}" for number in numbers]
            label = "at least partly kept" if row.least == 1 else "wholly kept"
            objective.add_row(label, str(row.agreement.n), *cells, str(row.unsaid))
    wrong = plain_table("error types named in wrong answers", gap=2)
    for name in ("known by", "due", "n", "right", "named"):
        wrong.add_column(name, justify="right" if name in ("n", "right") else "left")
    for types in attributed:
        named = ", ".join(f"{name} {count}" for name, count in types.named.items())
        right = f"{types.share:.2f}" if types.due else "-"
        wrong.add_row(types.why, types.due or "-", str(sum(types.named.values())), right, named)
    LiteralConsole().print(objective)
    LiteralConsole().print(wrong)
