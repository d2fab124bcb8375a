"""How often the search finds the turns annotated as evidence."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.options import home_option
from experiments.commands.output import write_output


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks evidence --suite annotated/
  python -m benchmarks evidence --suite conv-26.json --words --json evidence.json
"""
)
@click.option(
    "--suite",
    required=True,
    metavar="PATH|memtracebench",
    help="An annotated graph or a folder of them, or the public suite.",
)
@click.option("--words", is_flag=True, help="Rank by words (BM25) only, without the embedding model.")
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
@home_option
def evidence(suite: str, words: bool, target: Path | None, home: Path | None) -> None:
    """Measure the search for evidence: mean recall of the annotated turns among the first 1, 3, 5 and 8.

    The query is the question alone, with the wrong reply, or with the accepted answer; ranking is by words, by the
    embedded embedding model, or by both.
    """
    import json
    from contextlib import nullcontext

    from benchmarks.attribution_measuring import read_suite
    from benchmarks.evidence_recall import recall_at
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view
    from experiments.running.parts import home_folder, open_access
    from experiments.runs.config_file import load_config

    with run_view() as view:
        loaded = read_suite(suite, home_folder(home), view.progress)
    annotated = sum(bool(labelled.case.question.evidence) for labelled in loaded.cases)
    errors = LiteralConsole(stderr=True)
    with nullcontext() if words else open_access(load_config(None), home_folder(home)) as access:
        tables = {"words": recall_at(loaded)}
        if access is not None:
            with errors.status("embedding the messages, which takes minutes the first time"):
                tables["embeddings"] = recall_at(loaded, ranking="embeddings", embedding=access.embedding)
                tables["both"] = recall_at(loaded, ranking="both", embedding=access.embedding)
    if target is not None:
        write_output(target, json.dumps({"n": annotated, "recall": tables}, indent=2) + "\n", "--json")
    overview = plain_table(f"recall of the evidence of {annotated} cases", gap=2)
    for name in ("ranked by", "searched with", "first 1", "first 3", "first 5", "first 8"):
        overview.add_column(name, justify="right" if name.startswith("first") else "left", no_wrap=True)
    for ranking, table in tables.items():
        for query, recalls in table.items():
            searched_with = "question" if query == "question" else f"question + {query}"
            overview.add_row(ranking, searched_with, *(f"{recall:.3f}" for recall in recalls.values()))
    LiteralConsole().print(overview)
