"""How often the step at fault is named in failures of the real Mem0 that are certain by construction."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.commands.output import write_output


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks mem0-failures --json mem0-failures.json
  python -m benchmarks mem0-failures --each 50 --seed 7 --wrong
  python -m benchmarks mem0-failures --system mem0@2
"""
)
@click.option(
    "--each", type=click.IntRange(min=1), default=20, show_default=True, help="Conversations of each failure."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Draws the conversations.")
@click.option(
    "--system",
    default="mem0",
    show_default=True,
    metavar="NAME",
    help="mem0, which is installed here, or in its own environment mem0@0.1, mem0@1.0 or mem0@2.",
)
@click.option("--wrong", is_flag=True, help="Say of each wrong verdict what was found, and why.")
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
def mem0_failures(each: int, seed: int, system: str, wrong: bool, target: Path | None) -> None:
    """Tell the real Mem0 conversations whose last answer fails at a known step, and attribute the wrong answers.

    The model is scripted: a fact is left out or changed by the extraction, refused, overwritten or deleted by a
    decision, missed by the search among nearer entries, or given and ignored. That it so happened is checked in the
    library's own store and history and in its requests. A right operation is that of the session in which it failed.
    """
    import json

    from benchmarks.mem0_failures.measuring import SYSTEMS, failures_of, figures, verdicts
    from benchmarks.mem0_failures.story import stories
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import plain_table, run_view
    from tracing.errors import ConfigError

    if system not in SYSTEMS:
        raise ConfigError(f"--system: {system!r} is no Mem0; choose from {', '.join(SYSTEMS)}")
    told = stories(seed, each, failures_of(system))
    with run_view() as view:
        every = list(verdicts(told, system, lambda done, total: view.progress("conversations", done, total)))
    found = figures(every)
    table = plain_table(gap=2)
    for name in ("known", "failure", "n", "error type", "and operation", "named"):
        table.add_column(name, justify="left" if name in ("known", "failure", "named") else "right", no_wrap=True)
    for known, by_failure in found.items():
        for failure, row in by_failure.items():
            shares = (
                f"{row[key]['share']:.3f} ({row[key]['ci'][0]:.2f}–{row[key]['ci'][1]:.2f})"
                for key in ("type", "operation")
            )
            named = ", ".join(f"{name} {count}" for name, count in row["named"].items())
            table.add_row(known, failure, str(row["n"]), *shares, named)
    if target is not None:
        write_output(target, json.dumps({"seed": seed, "system": system, **found}, indent=2) + "\n", "--json")
    console = LiteralConsole()
    console.print(table)
    for verdict in every if wrong else ():
        if not verdict.right:
            known = "turn named" if verdict.told else "answer only"
            console.print(
                f"{verdict.story.failure}, {known}: {verdict.said}, {verdict.reason} [{verdict.story.question} "
                f"{verdict.story.answer}]",
                soft_wrap=True,
            )
