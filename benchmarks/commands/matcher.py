"""How well matchers tell what a text carries, and which replies are right in other words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.options import SuggestingChoice, home_option, model_options
from experiments.commands.output import write_output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from attribution.survival.matching.matcher import Matcher
    from benchmarks.matching.replies import Part
    from tracing.systems.conversations import Conversation

MEANING = "benchmarks.matching.embedding_matcher:by_meaning"
"""The matcher by meaning, which memtune does not ship."""


@click.command(
    epilog="""\b
Examples:
  python -m benchmarks matcher --json matcher.json
  python -m benchmarks matcher --matcher words --matcher mine:Matcher
  python -m benchmarks matcher --helper-model gpt-4.1-mini --base-url https://api.openai.com/v1
  python -m benchmarks matcher --only free --data locomo10.json --helper-model qwen2.5-coder-1.5b
"""
)
@click.option(
    "--matcher",
    "matchers",
    multiple=True,
    metavar="NAME",
    help="What to measure, several times: words, llm or your own as module:Object [default: words and "
    f"{MEANING}; llm too with --helper-model].",
)
@click.option(
    "--part",
    type=SuggestingChoice(["held-out", "development"]),
    default="held-out",
    show_default=True,
    help="Rules are developed on the second and measured on the first.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="LoCoMo's file, for replies to its questions in free words.",
)
@click.option(
    "--only",
    "kinds",
    type=SuggestingChoice(["pairs", "replies", "free"]),
    multiple=True,
    help="Judge only the pairs, the replies in other words or those in free words, several times [default: all].",
)
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
@model_options
@home_option
def matcher(
    matchers: tuple[str, ...],
    part: Part,
    data: Path | None,
    kinds: tuple[str, ...],
    target: Path | None,
    model: str | None,
    base_url: str | None,
    calls: int | None,
    home: Path | None,
) -> None:
    """Measure matchers on pairs of a claim and a text, in English, German, Spanish and French, and on replies.

    A text carries a claim as a paraphrase or in another form, and does not if it says the opposite, swaps two people's
    roles, or tells something near it. Replies are right in other words, or wrong and look much the same.
    """
    import json
    from contextlib import nullcontext

    from attribution.survival.matching.matcher import LLM, WORDS, open_matcher
    from benchmarks.attribution_measuring import calls_of
    from benchmarks.gold_answers.suite import conversations_to_spoil
    from benchmarks.matching.measuring import measure_matcher
    from benchmarks.matching.pairs import pairs_of
    from benchmarks.matching.replies import free_replies, replies_of
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import run_view
    from experiments.running.parts import home_folder, model_access
    from tracing.errors import ConfigError

    chosen = matchers or (WORDS, MEANING, *((LLM,) if model else ()))
    if LLM in chosen and model is None:
        raise ConfigError("--matcher llm: asks a model; name it with --helper-model, and its --base-url")
    if "free" in kinds and data is None:
        raise ConfigError("--only free: they are about LoCoMo's questions; give its file with --data")
    kinds = kinds or ("pairs", "replies", "free")
    pairs = pairs_of(part) if "pairs" in kinds else []
    replies = replies_of(part) if "replies" in kinds else []
    if data is not None and "free" in kinds:
        replies += free_replies(part, conversations_to_spoil(data, None))
    factories = {name: open_matcher(name) for name in chosen}
    surely = model is not None
    models = (
        model_access(home_folder(home), model=model, base_url=base_url, calls=calls, surely=surely)
        if any(name != WORDS for name in chosen)
        else nullcontext()
    )
    with models as access, run_view() as view:

        def measured(name: str) -> dict[str, Any]:
            def progress(what: str, done: int, total: int) -> None:
                view.progress(f"{name}: {what}", done, total)

            def make(conversation: Conversation) -> Matcher:
                # The matcher by words does without models.
                return factories[name](conversation, access)  # type: ignore[arg-type]

            before = calls_of(access)
            return measure_matcher(make, pairs, replies, progress) | {"calls": calls_of(access) - before}

        figures = {name: measured(name) for name in factories}
    if target is not None:
        write_output(target, json.dumps({"part": part, "matchers": figures}, indent=2) + "\n", "--json")
    console = LiteralConsole()
    if pairs:
        console.print(_pairs(figures))
    if replies:
        console.print(_replies(figures))
    for name, result in figures.items():
        spent = [f"{result['calls']:.0f} calls of a model; {result['check_s']:.1f} s until the first verdicts"]
        if pairs:
            spent.insert(0, f"balanced accuracy {result['balanced']:.3f}")
            spent.append(f"{result['ms_per_pair']:.1f} ms a pair")
        if replies:
            spent.append(f"{result['ms_per_reply']:.1f} ms a reply")
        console.print(f"{name}: {'; '.join(spent)}")


def _pairs(figures: Mapping[str, Mapping[str, Any]]) -> Table:
    from benchmarks.matching.pairs import LANGUAGES
    from experiments.display.tables import plain_table

    table = plain_table("verdicts on pairs that are right", gap=2)
    for name in ("", "matcher", "n", "all", *LANGUAGES):
        table.add_column(name, justify="left" if name in ("", "matcher") else "right", no_wrap=True)
    for kind in next(iter(figures.values()))["pairs"]:
        for name, result in figures.items():
            row = result["pairs"][kind]
            shares = (f"{row[language]['right']:.2f}" if language in row else "–" for language in ("all", *LANGUAGES))
            table.add_row(kind, name, str(row["all"]["n"]), *shares)
    return table


def _replies(figures: Mapping[str, Mapping[str, Any]]) -> Table:
    from experiments.display.tables import plain_table

    table = plain_table("replies in other words", gap=2)
    for name in ("", "matcher", "n", "right: told", "only in form", "wrong", "false pardons"):
        table.add_column(name, justify="left" if name in ("", "matcher") else "right", no_wrap=True)
    for kind in next(iter(figures.values()))["replies"]:
        for name, result in figures.items():
            row = result["replies"][kind]
            table.add_row(
                kind,
                name,
                str(row["n"]),
                f"{row['pardoned']:.2f}",
                f"{row['as_format']:.2f}",
                str(row["wrong"]),
                f"{row['false_pardons']:.2f}",
            )
    return table
