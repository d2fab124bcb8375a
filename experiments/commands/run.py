"""`memtune run`: the closed loop."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.earlier_names import RenamedOption
from experiments.commands.examples import examples
from experiments.commands.options import (
    SuggestingChoice,
    config_from,
    dataset_from,
    home_option,
    setup_options,
)
from experiments.display.terminal import say

if TYPE_CHECKING:
    from experiments.data.loaders import Dataset
    from experiments.running.run import Finished, SendingProgress
    from experiments.runs.config import RunConfig


_WHY_THE_DEMO = (
    "the demo tunes RAG by exact match, since this small model finds most answers but wraps them in sentences; a "
    "memory is built without a model and an answer takes one call, so search and test take 5 to 13 minutes"
)


@click.command(epilog=examples("run"))
@click.argument("config", required=False, metavar="[CONFIG.yaml|demo]")
@setup_options
@click.option(
    "--attribution",
    metavar="NAME",
    help="Attribution method: survival or your own as module:Object.",
)
@click.option(
    "--matcher",
    metavar="NAME",
    help="What decides whether a text carries what a question needs: words, llm or your own.",
)
@click.option(
    "--optimizer",
    metavar="NAME",
    help="Search algorithm: closed-loop, local-search, random, gepa, miprov2, simba, copro, bootstrap, reference or "
    "your own; several side by side with commas.",
)
@click.option(
    "--selector",
    type=SuggestingChoice(["blame", "round-robin", "uniform", "all", "random"]),
    help="How rounds choose the prompts to rewrite [default: blame].",
)
@click.option(
    "--no-blame",
    cls=RenamedOption,
    earlier="--no-attribution",
    flag_value=False,
    default=None,
    type=click.BOOL,
    help="Search without blame: every wrong answer counts against every prompt.",
)
@click.option(
    "--no-local-objectives",
    flag_value=False,
    default=None,
    type=click.BOOL,
    help="Compare rewrites end to end from the start, not first on recorded inputs.",
)
@click.option(
    "--goal",
    type=SuggestingChoice(["better", "cheaper"]),
    help="Seek better scores, or fewer tokens a question with scores no worse than --margin allows [default: better].",
)
@click.option(
    "--margin",
    type=float,
    metavar="M",
    help="With --goal cheaper: how much lower the score may be [default: 0.02].",
)
@click.option(
    "--rounds",
    type=int,
    metavar="N",
    help="Rounds of attribute, rewrite and gate [default: while budget or patience lasts].",
)
@click.option("--budget-calls", type=int, metavar="N", help="Stop cleanly before exceeding this number of model calls.")
@click.option(
    "--budget-minutes",
    type=float,
    metavar="M",
    help="Minutes for the run; the search ends in time for the test, which may end after them.",
)
@click.option("--seed", type=int, metavar="N", help="Seed of the loop's random choices.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run [default: a new one under HOME/runs].")
@click.option(
    "--resume",
    metavar="RUN",
    help="Resume a run that was interrupted or killed: its id, its folder, or `latest` (the one started last).",
)
@click.option(
    "--rewrites",
    "by_hand",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Your own prompts to try as well: a file NAME.txt, or a folder of them.",
)
@click.option(
    "--start",
    cls=RenamedOption,
    earlier="--prompts",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Start from these prompts instead of the system's own: a folder of NAME.txt (`memtune import-prompts`).",
)
@click.option(
    "--tune", metavar="PROMPTS", help="Rewrite these prompts alone, with commas between their names [default: all]."
)
@click.option("--approve", is_flag=True, help="Show the diff of each accepted change, and ask before keeping it.")
@click.option(
    "--smoke", is_flag=True, help="A quick check that everything works, with the smallest model if it was pulled."
)
@click.option(
    "--dry-run", is_flag=True, help="Print the maximum cost of the run, or why it would be refused, without any call."
)
@click.option("--quiet", is_flag=True, help="Print the results alone, no progress.")
@home_option
def run(
    config: str | None,
    out: Path | None,
    resume: str | None,
    by_hand: Path | None,
    approve: bool,
    smoke: bool,
    dry_run: bool,
    quiet: bool,
    home: Path | None,
    **options: Any,
) -> None:
    """Optimize the prompts of a memory system: trace, judge, attribute, rewrite, gate, test.

    CONFIG.yaml holds the settings; `demo` is the bundled example; options override both. The run's folder keeps
    summary.json, report.html and the prompts; MLflow keeps the curves.
    """
    from experiments.running.parts import home_folder, home_path
    from experiments.runs.folder import CONFIG, RunFolder

    if quiet and approve:
        raise click.UsageError("--approve shows what it asks about; leave out --quiet")
    if resume is not None and out is not None:
        raise click.UsageError("--resume continues in the run's own folder; leave out --out")
    if resume is not None and options["start"] is not None:
        raise click.UsageError("--resume continues with the prompts that the run began with; leave out --start")
    earlier = None
    if resume is not None:
        where = home_folder(home)
        earlier = RunFolder.find(where, resume)
        if home is None and earlier.home not in (None, where):
            # Named by its folder: its paid calls are in the cache of its own home.
            home = earlier.home
    typed = config is not None
    if earlier is not None and config is None:
        config = str(earlier.path / CONFIG)
    settings = config_from(config, options, smoke=smoke, typed=typed)
    dataset = dataset_from(settings)
    if dry_run:
        from experiments.running.run_parts import check_run

        check_run(settings, dataset, home_path(home), out=out, resume=earlier, by_hand=by_hand)
        _predict(settings, dataset)
        return
    from experiments.display.dashboard import live_run
    from experiments.display.progress import sending_progress
    from experiments.running.run import run_experiment

    where = home_folder(home)
    if config == "demo" and not quiet:
        say(f"note: {_WHY_THE_DEMO}", err=True)
    for note in () if quiet else _notes(settings, dataset, resumed=earlier is not None):
        say(f"note: {note}", err=True)
    with ExitStack() as stack:
        live = stack.enter_context(ExitStack())
        view, observers = live.enter_context(live_run(settings.rounds, quiet=quiet))

        def on_result(finished: Finished) -> SendingProgress:
            live.close()
            _show(finished, settings, where, named_home=home)
            return stack.enter_context(sending_progress(quiet=quiet))

        def on_start() -> None:
            for line in _begins(settings, dataset) if not quiet and earlier is None else ():
                view.line(line)

        finished = run_experiment(
            settings,
            dataset,
            where,
            out=out,
            resume=earlier,
            observers=observers,
            on_start=on_start,
            by_hand=by_hand,
            approve=view.approve if approve else None,
            on_result=on_result,
        )
    for problem in finished.problems[:1]:
        say(f"warning: MLflow did not record everything: {problem}", err=True)


def _notes(settings: RunConfig, dataset: Dataset, *, resumed: bool = False) -> list[str]:
    """What the user should know before the run."""
    from experiments.running.estimate import budget_notes, margin_notes, test_notes, unused_notes
    from experiments.running.parts import configured_system
    from experiments.runs.config_file import anchored

    test = dataset.splits.test
    of_goal = margin_notes(settings.margin, test) if settings.goal == "cheaper" else test_notes(len(test))
    notes = [*dataset.notes, *of_goal, *unused_notes(settings)]
    if resumed:
        return notes  # Some is paid already.
    config = anchored(settings, Path.cwd())
    return [*notes, *budget_notes(config, configured_system(config), dataset.splits)]


def _begins(settings: RunConfig, dataset: Dataset) -> list[str]:
    """What the user should know once nothing is wrong with the settings: of the system, and the cost at most."""
    from experiments.running.estimate import cost_sentence, rerun_notes, settings_line
    from experiments.running.parts import configured_system
    from experiments.runs.config_file import anchored

    config = anchored(settings, Path.cwd())
    system = configured_system(config)
    notes = [f"note: {note}" for note in rerun_notes(config, system)]
    return [*notes, settings_line(config, system), f"cost: {cost_sentence(config, system, dataset.splits)}"]


def _show(finished: Finished, settings: RunConfig, home: Path, *, named_home: Path | None) -> None:
    from experiments.commands.output import show_result
    from experiments.mlflow_tracking.sqlite_store import store_uri
    from experiments.runs.folder import REPORT
    from experiments.systems.exporting.exporter import Proves, open_exporter
    from experiments.systems.exporting.importing import own_form
    from experiments.systems.wrapped.system import WrappedProgram
    from tracing.recording.credentials import without_credentials
    from tracing.systems.registry import SYSTEMS

    summary = finished.summary
    show_result(summary, finished.result.power)
    option = f" --home {shlex.quote(str(named_home))}" if named_home else ""
    say(f"report: {finished.folder.path / REPORT}")
    patched = isinstance(SYSTEMS.open(settings.system), WrappedProgram)
    form = own_form(settings.system)
    library = form if form is not None and isinstance(open_exporter(form), Proves) else "text"
    to = "--to source --patch tuned.patch" if patched else f"--to {library} --out PATH"
    say(f"export: memtune export {finished.folder.named}{option} {to}")
    store = without_credentials(settings.tracking.uri or store_uri(home))
    say(f"watch: {store if store != store_uri(home) else f'memtune ui{option}'}")
    limits = ("calls", settings.budget.calls), ("minutes", settings.budget.minutes)
    raised = "".join(f" --budget-{name} {2 * limit:g}" for name, limit in limits if limit is not None)
    if raised and finished.result.stopped.kind == "budget":
        say(f"resume: memtune run --resume {finished.folder.named}{option}{raised}")
    if finished.remaining is not None:
        rounds = 2 * max((record.n for record in summary.rounds), default=1)
        more = f"; for more: memtune run --resume {finished.folder.named}{option} --rounds {rounds}"
        continuation = "" if finished.result.stopped.kind == "nothing-wrong" else more
        say(f"left of the budget: {finished.remaining}, since the search ended: {summary.stopped}{continuation}")


def _predict(settings: RunConfig, dataset: Dataset) -> None:
    from rich.table import Table

    from experiments.display.literal_console import LiteralConsole
    from experiments.running.estimate import cost_sentence, estimate, rerun_notes, settings_line
    from experiments.running.parts import configured_system, unpriced
    from optimizer.gating.verdict import SPREAD, WANTED_POWER, detectable

    system = configured_system(settings)
    upper_limit = estimate(settings, system, dataset.splits)
    table = Table()
    for name in ("", "conversations", "questions"):
        table.add_column(name, justify="right" if name else "left")
    for name, group in dataset.splits.named().items():
        table.add_row(name, str(len(group)), str(sum(len(conversation.questions) for conversation in group)))
    console = LiteralConsole()
    console.print(
        f"{settings.system} on {settings.dataset}, {settings.models.task.model}, "
        f"{settings.planned_rounds} round{'' if settings.planned_rounds == 1 else 's'}"
        + (" and more while budget or patience lasts" if settings.rounds is None else "")
    )
    console.print(table)
    console.print(settings_line(settings, system))
    for note in (*_notes(settings, dataset), *rerun_notes(settings, system)):
        console.print(f"note: {note}")
    least = detectable(len(dataset.splits.test))
    if least is not None and settings.goal == "better":
        console.print(
            f"a gain of {least:+.2f} or more would be found in {WANTED_POWER:.0%} of such runs, if it differs between "
            f"conversations by {SPREAD:.2f} (standard deviation)"
        )
    money = unpriced(settings) or f"{upper_limit.money:.2f}"
    console.print("an upper limit, with nothing served from the cache; runs usually need a part of it:")
    console.print(f"  calls    {upper_limit.calls:,}")
    console.print(f"  tokens   {upper_limit.prompt_tokens:,} in, {upper_limit.completion_tokens:,} out")
    console.print(f"  minutes  {upper_limit.minutes:,.0f}")
    console.print(f"  money    {money}")
    console.print(f"cost: {cost_sentence(settings, system, dataset.splits)}")
    if settings.search.calls is not None:
        console.print(f"The search itself, without baselines and test, makes at most {settings.search.calls:,} calls.")
    for name, limit in settings.budget.model_dump(exclude_none=True).items():
        console.print(
            f"The search ends in time for the test within {limit:,g} minutes; a test under way may end after them."
            if name == "minutes"
            else f"The budget stops the run before it exceeds {limit:,g} {name}."
        )
