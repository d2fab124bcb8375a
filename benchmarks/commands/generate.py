"""How many questions are generated, how many drafts are kept, and how many of those kept a reader finds sound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.options import SuggestingChoice
from experiments.commands.output import write_output

if TYPE_CHECKING:
    from benchmarks.generating.measuring import Part


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks generate
  python -m benchmarks generate --data locomo10.json --json generate.json
  python -m benchmarks generate --data locomo10.json --model qwen2.5-coder-1.5b --rows rows.jsonl
  python -m benchmarks generate --read rows.jsonl
""",
)
@click.option("--data", type=click.Path(path_type=Path), help="File or folder of a data set [default: the sample].")
@click.option("--model", metavar="NAME", help="The author [default: one that knows the written questions].")
@click.option(
    "--part",
    type=SuggestingChoice(["development", "held-out"]),
    default="held-out",
    show_default=True,
    help="Which conversations: those whose drafts were read while this was made, or the others.",
)
@click.option("--conversations", type=click.IntRange(min=1), metavar="N", help="Only the first N of them.")
@click.option("--sessions", type=click.IntRange(min=1), metavar="N", help="Only the first N sessions of each.")
@click.option("--kinds", metavar="KINDS", help="As for `memtune data generate`.")
@click.option("--per-session", type=click.IntRange(min=1), metavar="N", help="As for `memtune data generate`.")
@click.option("--budget-minutes", type=float, metavar="M", help="Stop after so many minutes; the same command goes on.")
@click.option("--home", type=click.Path(path_type=Path), default=".memtune", help="Folder of the reply cache.")
@click.option("--rows", type=click.Path(path_type=Path), metavar="FILE", help="Write the questions here, to be read.")
@click.option("--read", type=click.Path(path_type=Path), metavar="FILE", help="Print what the reader of FILE says.")
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
def generate(
    data: Path | None,
    model: str | None,
    part: Part,
    conversations: int | None,
    sessions: int | None,
    kinds: str | None,
    per_session: int | None,
    budget_minutes: float | None,
    home: Path,
    rows: Path | None,
    read: Path | None,
    target: Path | None,
) -> None:
    """Generate questions for conversations whose own questions are put aside, and count.

    Without --model the author is a script that gives the written question of a cited turn where there is one, so that
    what is dropped is what the tests refuse of sound questions. Whether a question is sound, a person says: --rows
    writes them, and --read counts the verdicts.
    """
    import json
    import tempfile
    from contextlib import ExitStack

    from benchmarks.generating.measuring import bare, figures_of, part_of, reading_figures, rows_to_read, write_rows
    from benchmarks.generating.scripted_author import ScriptedAuthor
    from benchmarks.scripted_server import ScriptedServer
    from experiments.data.data_check import dataset_name_of
    from experiments.data.datasets import conversations_of
    from experiments.data.generating.chats import Chats
    from experiments.data.generating.generating import plan_of
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import run_view
    from experiments.running.generation import generate_data
    from experiments.runs.config_file import load_config

    if read is not None:
        figures = reading_figures(read)
    else:
        name = "sample" if data is None else dataset_name_of(data)
        whole = part_of([one for one in conversations_of(name, data) if one.split != "sealed"], part)[:conversations]
        talks = [bare(talk.model_copy(update={"sessions": talk.sessions[:sessions]})) for talk in whole]
        with ExitStack() as stack:
            overrides: dict[str, Any] = {"budget.minutes": budget_minutes}
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            if model is None:
                server = ScriptedServer()
                stack.callback(server.close)
                knowing = ScriptedAuthor(whole)
                server.script = lambda body: knowing(body)
                home = Path(folder)
                overrides |= {"models.task.model": "scripted", "models.task.base_url": server.base_url}
            else:
                home.mkdir(parents=True, exist_ok=True)
                overrides["models.task.model"] = model
            view = stack.enter_context(run_view())
            generated = generate_data(
                load_config(None, overrides=overrides),
                Chats(talks),
                home,
                Path(folder) / "questions.jsonl",
                plan_of(kinds, per_session),
                progress=lambda done, total: view.progress("drafting", done, total),
            )
        figures = {"part": part, "author": model or "scripted", **figures_of(generated)}
        if rows is not None:
            write_rows(rows, rows_to_read(generated))
    if target is not None:
        write_output(target, json.dumps(figures, indent=2, ensure_ascii=False) + "\n", "--json")
    console = LiteralConsole()
    for key, value in figures.items():
        console.print(f"{key}: {value:.2f}" if isinstance(value, float) else f"{key}: {value}")
