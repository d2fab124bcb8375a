"""The settings of an experiment, validated by pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from attribution.attributor import ATTRIBUTORS, SURVIVAL
from attribution.judging.metrics import METRIC_PLUGINS
from attribution.survival.matching.matcher import MATCHERS, WORDS
from experiments.data.data_settings import DataLimits, LocomoSettings, Positive
from experiments.data.datasets import DATASETS, SAMPLE
from optimizer.objectives.objective import OBJECTIVES
from optimizer.proposers.rewrites import PROPOSERS
from optimizer.proposers.text_limits import TextLimits
from optimizer.racing.study_storage import storage_url
from optimizer.search.optimizers import LOCAL_SEARCH, OPTIMIZERS, optimizers_of
from optimizer.tuning.results import Selector
from tracing.errors import ConfigError
from tracing.llm.settings import Limits, ModelSettings, Role
from tracing.plugins import PluginRegistry
from tracing.strict_models import SettingsSection
from tracing.systems.registry import SYSTEMS


class Models(SettingsSection):
    """The model of each role; proposer and judge fall back to the task model, embedding to the embedded one."""

    task: ModelSettings = ModelSettings(model="qwen2.5-coder-0.5b")
    """The model that the memory system works with."""
    proposer: ModelSettings | None = None
    """The model that writes prompts; by default the task model."""
    judge: ModelSettings | None = None
    """The model that judges replies with `metric: llm_judge`; by default the task model."""
    embedding: ModelSettings | None = None
    """The embedding model; by default the embedded one."""

    @model_validator(mode="after")
    def _embeddings_are_no_replies(self) -> Self:
        for name in ("max_tokens", "reasoning_effort"):
            if self.embedding is not None and getattr(self.embedding, name) is not None:
                raise ValueError(f"embedding.{name}: an embedding model writes no reply; leave it out")
        return self

    def roles(self) -> dict[Role, ModelSettings]:
        """The roles that have their own model."""
        return {role: settings for role in get_args(Role) if (settings := getattr(self, role)) is not None}


class BudgetSettings(SettingsSection):
    """Hard limits of a run; None is no limit. `money` is in the currency of the models' prices."""

    calls: Positive | None = None
    """Most model calls; those answered from the cache do not count."""
    tokens: Positive | None = None
    """Most tokens, of prompts and replies together."""
    money: Annotated[float, Field(gt=0)] | None = None
    """Most money, in the currency of the models' prices."""
    minutes: Annotated[float, Field(gt=0)] | None = None
    """Minutes for the run; the search ends in time for the test, which may end after them."""

    def limits(self) -> Limits:
        """The same in the units of model access."""
        seconds = None if self.minutes is None else self.minutes * 60
        return Limits(calls=self.calls, tokens=self.tokens, money=self.money, seconds=seconds)


class Tracking(SettingsSection):
    """Where MLflow keeps the run."""

    uri: str | None = None
    """URI of the MLflow store; by default a sqlite file under the home."""
    experiment: str = "memtune"
    """Name of the MLflow experiment."""
    traces: Annotated[int, Field(ge=0)] = 500
    """How many questions become MLflow traces, of the baseline and of the champion each: all of the test first."""


def _without_commas(names: object) -> object:
    return [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else names


class PromptSettings(SettingsSection):
    """What a run starts from and what holds for every rewrite."""

    start: Path | None = None
    """Folder of baseline prompts (`NAME.txt`) instead of the system's own."""
    max_tokens: Positive | None = None
    """Most tokens of a rewrite; by default twice the baseline's, and 1,500 at least."""
    pinned: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """By prompt, lines of the baseline that every rewrite keeps."""
    tune: Annotated[tuple[str, ...] | None, BeforeValidator(_without_commas)] = None
    """The prompts that the run may rewrite; by default all. Where settings may be tuned it may be none (`[]`)."""

    def limits(self) -> TextLimits:
        """The same for the search."""
        return TextLimits(self.max_tokens, self.pinned)


_Value = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str


class SearchSettings(SettingsSection):
    """How an optimizer searches."""

    selector: Selector = "blame"
    """How rounds choose the prompts that they rewrite."""
    blame: bool = True
    """If not, every wrong answer counts against every prompt."""
    local_objectives: bool = True
    """If not, rewrites are compared end to end from the start, and not first on recorded inputs."""
    objectives: Mapping[str, Annotated[str, AfterValidator(lambda name: _known_to(OBJECTIVES, name))]] = Field(
        default_factory=dict
    )
    """By prompt, local objectives in place of the built-in ones."""
    settings: Literal["auto"] | Mapping[str, Annotated[tuple[_Value, ...], Field(min_length=1)]] = "auto"
    """Settings of the memory system that `local-search` may tune, with the values to choose from beside the run's;
    `auto`: those for which the system names values that are worth trying, if it names any; `none`: no setting."""
    calls: Positive | None = None
    """Most model calls of the search alone: those of baselines and test do not count, nor embedding calls that compare
    settings."""
    storage: Annotated[str, AfterValidator(storage_url)] | None = None
    """URL of a database for the Optuna studies of the joint choice; by default a file in the run's folder."""

    @field_validator("settings", mode="wrap")
    @classmethod
    def _choices(cls, value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        """One error in place of one for each form that a value may have."""
        try:
            # As an empty choice, which runs from before `auto` have where they tuned none.
            return check({} if value == "none" else value)
        except ValidationError as error:
            places = dict.fromkeys(str(problem["loc"][1]) for problem in error.errors() if len(problem["loc"]) > 1)
            where = "".join(f"{place}: " for place in list(places)[:1])
            raise ValueError(
                f"{where}numbers, texts or booleans to choose from are expected, not "
                f"{value[next(iter(places))] if places else value!r}; write {{top_k: [3, 5]}}, auto or none"
            ) from None


def _known_to(registry: PluginRegistry, name: str) -> str:
    try:
        registry.check(name)
    except ConfigError as error:
        # Pydantic names the key itself.
        raise ValueError(str(error).removeprefix(f"{registry.key}: ")) from None
    return name


def _with_commas(names: object) -> object:
    is_list = isinstance(names, list | tuple) and names and all(isinstance(name, str) for name in names)
    return ",".join(names) if is_list else names  # type: ignore[arg-type]


def _known_optimizers(names: str) -> str:
    return ",".join(_known_to(OPTIMIZERS, name) for name in optimizers_of(names))


class RunConfig(SettingsSection):
    """The settings of a run. Relative paths are relative to the folder of the file they are in."""

    system: Annotated[str, AfterValidator(partial(_known_to, SYSTEMS))] = "fact-memory"
    """The memory system: one of docs/systems.md, or your own as `module:Object`."""
    system_settings: Mapping[str, Any] = Field(default_factory=dict)
    """Its settings, as docs/systems.md lists them."""
    modules: tuple[Path, ...] = ()
    """Folders of modules of your own (`module:Object`); by default that of the file, and the current one."""
    dataset: Annotated[str, AfterValidator(partial(_known_to, DATASETS))] = SAMPLE
    """The data set: one of `memtune data list`, or your own as `module:function`."""
    data: Path | None = None
    """Its file or folder; docs/data-format.md shows files of your own."""
    limits: DataLimits = DataLimits()
    """How much of it is taken."""
    locomo: LocomoSettings = LocomoSettings()
    """For the data set `locomo`."""
    models: Models = Models()
    """The model of each role."""
    metric: Annotated[str, AfterValidator(partial(_known_to, METRIC_PLUGINS))] = "short_contains"
    """How replies are scored; `short_contains`: an accepted answer in a reply of at most 12 words."""
    attribution: Annotated[str, AfterValidator(partial(_known_to, ATTRIBUTORS))] = SURVIVAL
    """Which method finds the operation at fault."""
    matcher: Annotated[str, AfterValidator(partial(_known_to, MATCHERS))] = WORDS
    """What decides whether a text carries what a question needs, for attribution and local objectives."""
    optimizer: Annotated[str, BeforeValidator(_with_commas), AfterValidator(_known_optimizers)] = LOCAL_SEARCH
    """The search: one optimizer, or several side by side as a list or with commas."""
    proposers: Annotated[
        tuple[Annotated[str, AfterValidator(partial(_known_to, PROPOSERS))], ...],
        AfterValidator(lambda names: tuple(dict.fromkeys(names))),
    ] = Field(default=tuple(PROPOSERS.built_in), min_length=1)
    """What proposes texts for the blamed prompts."""
    prompts: PromptSettings = PromptSettings()
    """What the run starts from and what holds for every rewrite."""
    search: SearchSettings = SearchSettings()
    """How the optimizer searches."""
    goal: Literal["better", "cheaper"] = "better"
    """What is sought: `better` scores; or `cheaper` questions, of fewer tokens, at scores within `margin`."""
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """With `goal: cheaper`, how much lower the score may be; a small one takes many test questions to be shown."""
    rounds: Annotated[int, Field(ge=0)] | None = None
    """Rounds of attribute, rewrite and gate. By default as many as the budget allows, until sixty in a row bring no
    better prompts; without a budget, until one with `local-search`, which ends a round with each better prompt, and
    three in a row with other optimizers bring none (those from the literature make three)."""
    proposals: Positive = 4
    """Texts that a round of `closed-loop` and similar optimizers tries."""
    seed: int = 0
    """Seed of the loop's random choices."""
    concurrency: Positive | None = None
    """Concurrent requests to one endpoint; by default 8."""
    budget: BudgetSettings = BudgetSettings()
    """Hard limits of the run."""
    tracking: Tracking = Tracking()
    """Where MLflow keeps the run."""

    def parts(self) -> list[tuple[PluginRegistry, str]]:
        """The parts that it names, each with the registry that finds it."""
        return [
            (SYSTEMS, self.system),
            (ATTRIBUTORS, self.attribution),
            (MATCHERS, self.matcher),
            *((OPTIMIZERS, name) for name in optimizers_of(self.optimizer)),
            *((PROPOSERS, name) for name in self.proposers),
            *((OBJECTIVES, name) for name in self.search.objectives.values()),
            (METRIC_PLUGINS, self.metric),
            (DATASETS, self.dataset),
        ]

    @property
    def planned_rounds(self) -> int:
        """The rounds of the search; where their number is open, those it makes before it asks for a reason to go on."""
        if self.rounds is not None:
            return self.rounds
        return 1 if LOCAL_SEARCH in optimizers_of(self.optimizer) else 3
