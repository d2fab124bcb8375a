"""`memtune data generate`: questions for conversations that have none."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import concurrency_option, config_from, home_option, task_model_options
from experiments.display.terminal import say

if TYPE_CHECKING:
    from experiments.data.generating.chats import Chats
    from experiments.data.generating.generating import Generated, Plan
    from experiments.runs.config import RunConfig


@click.command(epilog=examples("data generate"))
@click.argument("chats", metavar="CHATS")
@click.argument("config", required=False, metavar="[CONFIG.yaml]")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File of the data set, JSONL.")
@click.option(
    "--dataset", metavar="NAME", help="What CHATS is, where that is not recognised [default: by its content]."
)
@click.option(
    "--complaints",
    "log",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With traces: a log of answers that users called wrong, as `memtune attribute` takes it.",
)
@click.option("--kinds", metavar="KINDS", help="Ask only questions of these kinds, with commas between [default: all].")
@click.option("--per-session", type=click.IntRange(min=1), metavar="N", help="Facts of at most N turns a session.")
@task_model_options
@concurrency_option
@click.option("--budget-calls", type=int, metavar="N", help="Stop before exceeding this number of model calls.")
@click.option("--budget-minutes", type=float, metavar="M", help="Stop after so many minutes.")
@click.option("--dry-run", is_flag=True, help="Print the maximum cost, without any call.")
@home_option
def generate(
    chats: str,
    config: str | None,
    out: Path,
    dataset: str | None,
    log: Path | None,
    kinds: str | None,
    per_session: int | None,
    dry_run: bool,
    home: Path | None,
    **options: Any,
) -> None:
    """Draft questions about CHATS with answers and evidence, keep those that pass every test, and write a data set.

    CHATS is a file or folder of conversations or traces, or the name of a data set. A model drafts from cited turns; of
    CONFIG.yaml it is the proposer, or else the task model, and no other one is asked. What is dropped is counted by
    reason. If it is stopped, the same command goes on.
    """
    from experiments.data.dataset_reader import Reading
    from experiments.data.generating.chats import open_chats
    from experiments.data.generating.finished_parts import check_out
    from experiments.data.generating.generating import plan_of
    from experiments.display.tables import run_view
    from experiments.running.generation import generate_data
    from experiments.running.parts import home_folder

    settings = config_from(config, options)
    plan, reading = plan_of(kinds, per_session), Reading()
    check_out(out)
    conversations = open_chats(chats, reading, dataset=dataset, log=log)
    for note in reading.omitted():
        say(f"note: {note}", err=True)
    cost = _cost(settings, conversations, plan)
    if dry_run:
        say(f"cost: {cost}")
        return
    with run_view() as view:
        generated = generate_data(
            settings,
            conversations,
            home_folder(home),
            out,
            plan,
            progress=partial(view.progress, "drafting"),
            on_start=lambda: say(f"cost: {cost}", err=True),
        )
    _show(generated, out)


def _cost(settings: RunConfig, chats: Chats, plan: Plan) -> str:
    from experiments.running.generation import author_config, generation_cost
    from experiments.running.parts import unpriced

    alone = author_config(settings)
    most = generation_cost(settings, chats, plan)
    money = f", {most.money:,.2f} money" if most.money else ""
    unknown = unpriced(alone)
    return (
        f"at most {most.calls:,} calls of {alone.models.task.model} at {alone.models.task.place}, "
        f"{most.prompt_tokens + most.completion_tokens:,} tokens, {most.minutes:,.0f} minutes{money}; usually "
        f"less than half, since most drafts fail an early test{f'. {unknown}' if unknown else ''}"
    )


def _show(generated: Generated, out: Path) -> None:
    from rich.table import Table

    from experiments.display.literal_console import LiteralConsole

    table = Table()
    for name in ("kind", "drafts", "kept"):
        table.add_column(name, justify="left" if name == "kind" else "right")
    for kind, count in generated.drafts.items():
        table.add_row(kind, str(count), str(generated.kept[kind]))
    console = LiteralConsole()
    console.print(table)
    for reason, count in generated.dropped.most_common():
        console.print(f"{count} dropped: {reason}")
    say(
        f"{out}: {generated.kept.total()} questions of {generated.drafts.total()} drafts kept "
        f"({generated.share_kept:.0%}), from {generated.sessions} sessions"
    )
    if generated.stopped is not None:
        say(f"stopped: {generated.stopped}; the same command with a larger budget goes on")
    path = shlex.quote(str(out))
    say(f"confirm: memtune data review {path} (no test or sealed question counts until a person has confirmed it)")
    say(f"check: memtune data validate {path} && memtune data audit --gold --dataset jsonl --data {path}")
