"""`memtune data show` and `memtune data validate`: what a data set holds, and every problem of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import config_from, data_options
from experiments.display.terminal import brief, say, shortened
from tracing.errors import DataError

if TYPE_CHECKING:
    from experiments.display.literal_console import LiteralConsole
    from experiments.runs.config import RunConfig
    from tracing.systems.conversations import Conversation

_TURNS, _IDS, _LONGEST, _LONGEST_ANSWER = 3, 20, 160, 400
"""How much is shown: turns of the outer sessions, conversations by id, characters of a turn and of answers."""


@click.command(epilog=examples("data show"))
@click.argument("source", required=False, metavar="[NAME|PATH|CONFIG.yaml]")
@click.option(
    "--conversation",
    "chosen",
    metavar="ID",
    help="Print this conversation whole, with the ids of its turns [default: the ends of the first].",
)
@data_options
def show(source: str | None, chosen: str | None, **options: Any) -> None:
    """Print what a data set holds: its splits, kinds of question, what is left out, and a conversation.

    It is the data set NAME, a file or folder PATH, which is recognised by its content, or that of a configuration.
    """
    from experiments.data.dataset_reader import Reading
    from experiments.data.datasets import card_of
    from experiments.data.loaders import Dataset, load_dataset, read_dataset
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import run_view

    config = _settings(source, options)
    reading = Reading()
    dataset: Dataset | None = None
    why = ""
    groups: dict[str, Sequence[Conversation]]
    with run_view() as view:
        try:
            dataset = load_dataset(config, progress=partial(view.progress, f"reading {config.dataset}"))
            groups = dict(dataset.splits.named().items())
        except DataError as error:
            # What cannot be split can still be looked at; what cannot be read fails here again.
            why = str(error)
            groups = {"all": tuple(read_dataset(config, reading))}
    console = LiteralConsole()
    card = card_of(config.dataset)
    if card is not None:
        console.print(f"{config.dataset}: {card.what}; licence: {card.licence}{f'; {card.home}' if card.home else ''}")
    _print_counts(console, groups)
    notes = dataset.notes if dataset is not None else reading.omitted()
    for note in (*notes, *([f"not usable in a run: {why}"] if why else [])):
        console.print(f"note: {note}")
    conversations = [conversation for group in groups.values() for conversation in group]
    matches = [conversation for conversation in conversations if chosen is None or conversation.id == chosen]
    if not matches:
        known_ids = ", ".join(conversation.id for conversation in conversations[:9])
        raise DataError(f"--conversation {chosen}: there is none of this id; there are {known_ids}")
    ids = ", ".join(conversation.id for conversation in conversations[:_IDS])
    console.print(f"ids: {ids}{', …' if len(conversations) > _IDS else ''}")
    _print_conversation(console, matches[0], whole=chosen is not None)


def _settings(source: str | None, options: dict[str, Any]) -> RunConfig:
    from experiments.data.data_check import dataset_name_of
    from experiments.data.datasets import DATASETS
    from experiments.runs.config_file import bundled_configs

    if source is None or source in bundled_configs() or Path(source).suffix in (".yaml", ".yml"):
        return config_from(source, options)
    if source in DATASETS.names() and not (options.get("dataset") and Path(source).exists()):
        return config_from(None, {**options, "dataset": source})
    path = Path(source)
    return config_from(None, {**options, "dataset": options.get("dataset") or dataset_name_of(path), "data": path})


def _print_counts(console: LiteralConsole, groups: dict[str, Sequence[Conversation]]) -> None:
    from collections import Counter

    from rich.table import Table

    table = Table()
    facts = any(conversation.facts for group in groups.values() for conversation in group)
    names = ("split", "conversations", "sessions", "turns", *(("facts",) if facts else ()), "questions", "kinds")
    for name in names:
        table.add_column(name, justify="left" if name in ("split", "kinds") else "right")
    for name, group in groups.items():
        kinds = Counter(question.kind for conversation in group for question in conversation.questions)
        cells = [
            name,
            str(len(group)),
            str(sum(len(conversation.sessions) for conversation in group)),
            str(sum(1 for conversation in group for _ in conversation.turns())),
            *([str(sum(len(conversation.facts) for conversation in group))] if facts else []),
            str(sum(kinds.values())),
            ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()),
        ]
        table.add_row(*cells)
    console.print(table)


def _print_conversation(console: LiteralConsole, conversation: Conversation, *, whole: bool) -> None:
    console.print(f"{conversation.id}: {', '.join(conversation.speakers)}; {len(conversation.sessions)} sessions")
    sessions = conversation.sessions
    for session in sessions if whole else dict.fromkeys((sessions[0], sessions[-1])):
        console.print(f"  {session.id}{f', {session.time}' if session.time else ''}")
        shown_turns = session.turns if whole else session.turns[:_TURNS]
        for turn in shown_turns:
            console.print(f"    {turn.id} {turn.speaker}: {shortened(' '.join(turn.text.split()), _LONGEST)}")
        if len(session.turns) > len(shown_turns):
            console.print(f"    … {len(session.turns) - len(shown_turns)} more turns")
    if conversation.questions:
        first = conversation.questions[0]
        answers = shortened(" | ".join(first.answers), _LONGEST_ANSWER)
        console.print(f"{conversation.id}: {first.asked} → {answers}")


@click.command(epilog=examples("data validate"))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--dataset", metavar="NAME", help="What it is, where that is not recognised [default: by its content].")
def validate(path: Path, dataset: str | None) -> int:
    """Check a file or folder of data, and print every problem with its file, line or key, and remedy."""
    from experiments.data.data_check import dataset_name_of, problems_of_dataset
    from experiments.display.tables import run_view

    if not path.exists():
        raise DataError(f"{path}: no such file or folder; give an existing one")
    name = dataset or dataset_name_of(path)
    with run_view() as view:
        check = problems_of_dataset(name, path, partial(view.progress, f"checking {path}"))
    for problem in check.problems:
        say(brief(problem))
    for note in check.notes:
        say(f"note: {note}", err=True)
    counts = f"{check.conversations} conversations, {check.questions} questions"
    if check.problems:
        say(f"{path}: {len(check.problems)} problem{'s' if len(check.problems) > 1 else ''} as {name} ({counts} read)")
        return 1
    say(f"{path}: {name}, {counts}, no problem")
    return 0
