"""Options that several commands share, and how they are declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.earlier_names import RenamedOption, note_renamed, noted_word
from experiments.runs.earlier_names import SIDES
from tracing.suggestions import did_you_mean

if TYPE_CHECKING:
    from experiments.data.loaders import Dataset
    from experiments.runs.config import RunConfig

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class SuggestingChoice(click.Choice[str]):
    """click's, with a suggestion where the word is none of the choices."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The choice, also by an earlier name, which is noted."""
        return super().convert(noted_word(value, SIDES) if SIDES.get(value) in self.choices else value, param, ctx)

    def get_invalid_choice_message(self, value: str, ctx: click.Context | None) -> str:
        """Name the choices, and the nearest."""
        return f"{super().get_invalid_choice_message(value, ctx).rstrip('.')}{did_you_mean(value, self.choices)}"


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """The epoch seconds of a moment; see `experiments.data.own.moments`."""
    from experiments.data.own.moments import FORMS, epoch_of

    try:
        return None if value is None else epoch_of(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no moment; give {FORMS}, or so long ago: 12h, 1d, yesterday", ctx, param
        ) from None


def several(*options: Decorator) -> Decorator:
    """One decorator that declares several options, in the order of the command's help."""

    def declare(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return declare


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
_questions_option = click.option(
    "--data", type=click.Path(path_type=Path), help="Conversations with the questions that were asked (jsonl)."
)
_case_timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=120.0,
    show_default=True,
    help="Seconds of model time per case, and per reply.",
)

system_option = click.option(
    "--system", metavar="NAME", help="Memory system: one of docs/systems.md, or your own as module:Object."
)
_base_url_option = click.option(
    "--base-url", metavar="URL", help="OpenAI-compatible endpoint; the key comes from $OPENAI_API_KEY."
)
concurrency_option = click.option(
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

data_options = several(
    click.option("--dataset", metavar="NAME", help="Data set, of `memtune data list`, or your own as module:function."),
    click.option("--data", type=click.Path(path_type=Path), help="File or folder of the data set."),
    click.option("--limit-conversations", type=int, metavar="N", help="At most N conversations over all splits."),
    click.option("--limit-sessions", type=int, metavar="N", help="Only the first N sessions of each conversation."),
    click.option("--limit-questions", type=int, metavar="N", help="At most N questions per conversation."),
)
"""The data set and how much of it."""

task_model_options = several(
    click.option(
        "--model", metavar="NAME", help="Task model: an embedded one (`memtune model list`) or the endpoint's name."
    ),
    _base_url_option,
)

setup_options = several(system_option, data_options, task_model_options, concurrency_option)
"""What to run: system, data and how much of it, and model."""

helper_options = several(_helper_model_option, _base_url_option, concurrency_option)
"""The model that a method asks, whose cases are many."""

traces_options = several(whose_traces_option, _questions_option)
"""Which traces of a run, and what was asked in those of no run."""

model_options = several(
    _helper_model_option,
    _base_url_option,
    click.option(
        "--budget-calls", "calls", type=click.IntRange(min=1), metavar="N", help="At most N calls to the model."
    ),
)
"""Which model to ask about traces, and how often: what `model_access` takes."""

case_options = several(_case_timeout_option, model_options)
"""Which model to ask about cases, and how long."""


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
