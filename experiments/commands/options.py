"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from experiments.commands.choice import SuggestingChoice
from experiments.commands.earlier_names import RenamedOption, note_renamed

if TYPE_CHECKING:
    from experiments.data.loaders import Dataset
    from experiments.runs.config import RunConfig

Command = TypeVar("Command", bound=Callable[..., Any])

home_option = click.option(
    "--home",
    type=click.Path(path_type=Path),
    help="Folder of runs, MLflow store and caches [default: $MEMTUNE_HOME, else .memtune].",
)

whose_traces_option = click.option(
    "--traces-of",
    type=SuggestingChoice(("baseline", "champion", "all")),
    default="champion",
    show_default=True,
    help="For a run: the traces of which prompts.",
)
questions_option = click.option(
    "--data", type=click.Path(path_type=Path), help="Conversations with the questions that were asked (jsonl)."
)
case_timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=120.0,
    show_default=True,
    help="Seconds of model time per case, and per reply.",
)

_base_url_option = click.option(
    "--base-url", metavar="URL", help="OpenAI-compatible endpoint; the key comes from $OPENAI_API_KEY."
)
_concurrency_option = click.option(
    "--concurrency", type=click.IntRange(min=1), metavar="N", help="Concurrent requests to one endpoint [default: 8]."
)
_helper_model_option = click.option(
    "--helper-model",
    "model",
    cls=RenamedOption,
    earlier="--model",
    metavar="NAME",
    help="Model that helps: an embedded one (`memtune model list`) or the endpoint's name.",
)


def data_options(command: Command) -> Command:
    """The options for the data set and how much of it."""
    return with_options(
        command,
        click.option(
            "--dataset", metavar="NAME", help="Data set, of `memtune data list`, or your own as module:function."
        ),
        click.option("--data", type=click.Path(path_type=Path), help="File or folder of the data set."),
        click.option("--limit-conversations", type=int, metavar="N", help="At most N conversations over all splits."),
        click.option("--limit-sessions", type=int, metavar="N", help="Only the first N sessions of each conversation."),
        click.option("--limit-questions", type=int, metavar="N", help="At most N questions per conversation."),
    )


def task_model_options(command: Command) -> Command:
    """The options for the task model."""
    return with_options(
        command,
        click.option(
            "--model", metavar="NAME", help="Task model: an embedded one (`memtune model list`) or the endpoint's name."
        ),
        _base_url_option,
        _concurrency_option,
    )


def setup_options(command: Command) -> Command:
    """The options for what to run: system, data and how much of it, and model."""
    return with_options(
        command,
        click.option(
            "--system", metavar="NAME", help="Memory system: one of docs/systems.md, or your own as module:Object."
        ),
        data_options,
        task_model_options,
    )


def executor_options(command: Command) -> Command:
    """The options for where the system runs."""
    return with_options(
        command,
        click.option(
            "--executor",
            metavar="KIND",
            help="Where the system runs: in this process's threads, or on ray [default: threads].",
        ),
        click.option(
            "--address", metavar="ADDRESS", help="A Ray cluster's [default: $RAY_ADDRESS, else a Ray on this machine]."
        ),
    )


def helper_options(command: Command) -> Command:
    """The options for the model that a method asks, whose cases are many."""
    return with_options(command, _helper_model_option, _base_url_option, _concurrency_option)


def model_options(command: Command) -> Command:
    """The options for which model to ask about traces, and how often."""
    return with_options(
        command,
        _helper_model_option,
        _base_url_option,
        click.option("--budget-calls", type=click.IntRange(min=1), metavar="N", help="At most N calls to the model."),
    )


def with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    """The command with these options, in the order of its help."""
    for option in reversed(options):
        command = option(command)
    return command


def dataset_from(config: RunConfig) -> Dataset:
    """The data set of a configuration; progress is shown while a large file is read."""
    from experiments.data.loaders import load_dataset
    from experiments.display.tables import run_view

    with run_view() as view:
        return load_dataset(config, progress=partial(view.progress, f"reading {config.dataset}"))


def config_from(
    source: str | None, options: Mapping[str, Any], *, smoke: bool = False, typed: bool = True
) -> RunConfig:
    """The configuration in `source`, overridden by the options of a command.

    Earlier names of keys are noted, unless nobody `typed` it: it is that of a run.
    """
    from experiments.runs.config_file import OPTIONS, load_config

    parameters = {key: option.removeprefix("--").replace("-", "_") for key, option in OPTIONS.items()}
    overrides = {key: options.get(parameter) for key, parameter in parameters.items()}
    noted = {"on_earlier_key": note_renamed} if typed and source is not None else {}
    return load_config(source, overrides=overrides, smoke=smoke, **noted)
