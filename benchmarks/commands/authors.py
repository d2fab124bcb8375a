"""What models are worth as authors of prompts: what they write, in which form, and what it gains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.options import SuggestingChoice
from experiments.commands.output import write_output

if TYPE_CHECKING:
    from rich.table import Table


_LANGMEM = ("langmem-metaprompt", "langmem-gradient", "langmem-prompt-memory")


@click.command(
    "authors",
    epilog="""\b
Examples:
  python -m benchmarks authors
  python -m benchmarks authors --flaw general-terms --flaw polite-complete --author scripted --author qwen2.5-coder-1.5b
  python -m benchmarks authors --system rag --author http://127.0.0.1:8080/v1#large
""",
)
@click.option("--system", default="fact-memory", show_default=True, metavar="NAME", help="Whose prompts are rewritten.")
@click.option("--model", default="qwen2.5-coder-0.5b", show_default=True, metavar="NAME", help="What the system asks.")
@click.option(
    "--flaw", "flaws", multiple=True, metavar="NAME", help="Spoils a prompt of the fact memory (blame/real_flaws.toml)."
)
@click.option(
    "--author",
    "authors",
    multiple=True,
    metavar="MODEL",
    help="Who writes; `scripted` knows what the flaws took out [default: the system's model].",
)
@click.option(
    "--form",
    "forms",
    multiple=True,
    type=SuggestingChoice(["lines", "whole", "gepa", "miprov2", *_LANGMEM, "bank"]),
    help="Our changes of lines or whole templates, instructions of GEPA, MIPROv2 or an optimizer of LangMem, or "
    "people's lines [default: all].",
)
@click.option("--prompt", "prompts", multiple=True, metavar="NAME", help="Only this prompt, repeatable.")
@click.option("--conversations", type=click.IntRange(2), default=8, show_default=True, help="Half is shown to authors.")
@click.option("--questions", type=click.IntRange(1), default=6, show_default=True, help="Of each conversation.")
@click.option("--texts", type=click.IntRange(1), default=6, show_default=True, help="Wanted of each prompt.")
@click.option("--inputs", type=click.IntRange(1), default=16, show_default=True, help="On which each is measured.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of every draw.")
@click.option("--home", type=click.Path(path_type=Path), default=Path(".memtune"), help="Folder of the reply cache.")
@click.option("--json", "target", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here.")
def authors(
    system: str,
    model: str,
    flaws: tuple[str, ...],
    authors: tuple[str, ...],
    forms: tuple[str, ...],
    prompts: tuple[str, ...],
    conversations: int,
    questions: int,
    texts: int,
    inputs: int,
    seed: int,
    home: Path,
    target: Path | None,
) -> None:
    """Let authors rewrite each prompt of a system, and measure the texts on recorded inputs that they never saw.

    The baseline answers questions on some conversations of the sample. The author reads the failures on one half; its
    texts are measured on what the operation was given on the other half, one call for each input.
    """
    import json
    from contextlib import ExitStack

    from attribution.attributor import SURVIVAL, open_attributor
    from benchmarks.authors.forms import FORMS, Recorded
    from benchmarks.authors.knowing import KNOWING, KnowingAuthor
    from benchmarks.authors.measuring import READ, measure_author
    from benchmarks.blame.real_model import real_flaws
    from benchmarks.scripted_model import serve
    from experiments.api.starting import Model, settings_from
    from experiments.data.loaders import load_dataset
    from experiments.display.literal_console import LiteralConsole
    from experiments.display.tables import run_view
    from experiments.running.parts import evaluator_of, open_access, ready_system
    from optimizer.objectives.objectives import objectives_of
    from optimizer.proposers.text_limits import TextLimits
    from optimizer.tuning.failures import Failures
    from tracing.errors import ConfigError, RunError
    from tracing.suggestions import unknown_names
    from tracing.systems.baseline import with_baseline
    from tracing.systems.prompts import baseline_candidate

    home.mkdir(parents=True, exist_ok=True)
    planted = real_flaws(flaws)
    result: dict[str, Any] = {"system": system, "model": model, "flaws": flaws, "seed": seed, "authors": {}}
    limits = {"conversations": 3 * (conversations + len(READ)), "questions": questions}
    with run_view() as view, ExitStack() as served:
        for author in authors or (model,):
            proposer: Model = author
            if author == KNOWING:
                proposer = served.enter_context(serve(KnowingAuthor(planted)))["task"]
            models = {"task": model, "proposer": proposer}
            config = settings_from(home, system=system, models=models, settings={"limits": limits})
            pool = load_dataset(config).splits
            drawn = [part for part in (*pool.train, *pool.validation) if part.id not in READ][:conversations]
            tuned = ready_system(config)
            if unknown := [name for name in prompts if name not in tuned.prompts]:
                raise ConfigError(f"--prompt: {system} has no {unknown_names(unknown, tuned.prompts)}")
            for flaw in planted:
                tuned = with_baseline(tuned, flaw.spoiled(baseline_candidate(tuned.prompts)))
            with open_access(config, home) as access:
                evaluator = evaluator_of(config, tuned, access, home)
                outcomes = evaluator.evaluate(
                    baseline_candidate(tuned.prompts),
                    drawn,
                    progress=lambda done, total, *_: view.progress("baseline", done, total),
                )
                if tainted := next((outcome.tainted for outcome in outcomes if outcome.tainted is not None), None):
                    raise RunError(f"the baseline failed on a conversation, so nothing is measured: {tainted}")
                half = len(outcomes) // 2
                learnt = [outcome.conversation for outcome in outcomes[:half]]
                objectives = objectives_of(evaluator, {})
                recorded = Recorded(
                    evaluator,
                    TextLimits().applied(tuned.prompts, learnt, access.keys),
                    {name: objective for name, objective in objectives.items() if not prompts or name in prompts},
                    outcomes[:half],
                    outcomes[half:],
                    Failures(open_attributor(SURVIVAL), access, tuned.operations),
                )
                result["authors"][author] = {
                    form: measure_author(recorded, form, count=texts, inputs=inputs, seed=seed)
                    for form in forms or FORMS
                }
    if target is not None:
        write_output(target, json.dumps(result, indent=2, ensure_ascii=False) + "\n", "--json")
    LiteralConsole().print(_table(result))


def _table(result: dict[str, Any]) -> Table:
    from experiments.display.tables import plain_table

    table = plain_table(f"Authors of the prompts of {result['system']}, asked by {result['model']}", gap=2)
    counts = ("failures", "requests", "seconds", "texts", "usable", "gained", "accepted")
    for name in ("author", "form", "prompt", *counts, "mean gain", "best gain"):
        table.add_column(name, justify="left" if name in ("author", "form", "prompt") else "right", no_wrap=True)
    for author, forms in result["authors"].items():
        for form, prompts in forms.items():
            for prompt, row in prompts.items():
                cells = [str(row.get(key, "–")) for key in counts]
                gains = ["–" if row.get(key) is None else f"{row[key]:+.3f}" for key in ("mean_gain", "best_gain")]
                table.add_row(author, form, prompt, *cells, *gains)
    return table
