"""The settings of an experiment, validated by pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from attribution.attributor import ATTRIBUTORS, SURVIVAL
from attribution.judging.metrics import METRIC_DOOR
from attribution.survival.matching.matcher import MATCHERS, WORDS
from experiments.data.datasets import DATASETS, SAMPLE
from experiments.data.settings import DataLimits, LocomoSettings, Positive
from optimizer.objectives.objectives import OBJECTIVES
from optimizer.proposers.proposals import PROPOSERS
from optimizer.proposers.text_limits import TextLimits
from optimizer.racing.studies import storage_url
from optimizer.search.optimizers import LOCAL_SEARCH, OPTIMIZERS, optimizers_of
from optimizer.tuning.results import Selector
from tracing.doors import Door
from tracing.errors import ConfigError
from tracing.llm.settings import Limits, ModelSettings, Role
from tracing.systems.registry import SYSTEMS


class _Section(BaseModel):
    # `load_config` reports what is wrong with a setting: it knows what may be shown of it.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Models(_Section):
    """The model of each role; proposer and judge fall back to the task model, embedding to the embedded one."""

    task: ModelSettings = ModelSettings(model="qwen2.5-coder-0.5b")
    proposer: ModelSettings | None = None
    judge: ModelSettings | None = None
    embedding: ModelSettings | None = None

    def roles(self) -> dict[Role, ModelSettings]:
        """The roles that have their own model."""
        named: dict[Role, ModelSettings | None] = {
            "task": self.task,
            "proposer": self.proposer,
            "judge": self.judge,
            "embedding": self.embedding,
        }
        return {role: settings for role, settings in named.items() if settings is not None}


class BudgetSettings(_Section):
    """Hard limits of a run; None is no limit. `money` is in the currency of the models' prices."""

    calls: Positive | None = None
    tokens: Positive | None = None
    money: Annotated[float, Field(gt=0)] | None = None
    minutes: Annotated[float, Field(gt=0)] | None = None

    def limits(self) -> Limits:
        """The same in the units of model access."""
        seconds = None if self.minutes is None else self.minutes * 60
        return Limits(calls=self.calls, tokens=self.tokens, money=self.money, seconds=seconds)


class Tracking(_Section):
    """Where MLflow keeps the run; without a `uri` a sqlite file under the home.

    `traces` is how many cases become MLflow traces, of the seed and of the champion each.
    """

    uri: str | None = None
    experiment: str = "memtune"
    traces: Annotated[int, Field(ge=0)] = 100


class PromptSettings(_Section):
    """What a run starts from and what holds for every rewrite.

    `start` is a folder of seed prompts (`NAME.txt`) instead of the system's own. A rewrite has at most `max_tokens` (by
    default twice the seed's, and 1,500 at least), and keeps the `pinned` lines of the seed, by prompt.
    """

    start: Path | None = None
    max_tokens: Positive | None = None
    pinned: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)

    def limits(self) -> TextLimits:
        """The same for the search."""
        return TextLimits(self.max_tokens, self.pinned)


class ExecutorSettings(_Section):
    """Where the memory system runs: in threads of this process, or on Ray.

    `address` is that of a Ray cluster; without one, $RAY_ADDRESS, or else a Ray started on this machine for the run.
    """

    kind: Literal["threads", "ray"] = "threads"
    address: str | None = None

    @model_validator(mode="after")
    def _address_is_used(self) -> Self:
        if self.address is not None and self.kind != "ray":
            raise ValueError("address: is that of a Ray cluster; add --executor ray, or leave it out")
        return self


_Value = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str


class SearchSettings(_Section):
    """How an optimizer searches.

    `selector` says how rounds choose the prompts that they rewrite. Without `attribution`, every wrong answer counts
    against every prompt; without `local_objectives`, texts are compared end to end from the start. `objectives` replace
    the built-in local objectives of some prompts. `settings` are those of the memory system that `local-search` may
    tune, with the values that it may choose from beside the run's own. `calls` limits the model calls of the search
    alone: those of baselines and test do not count. `storage` is the URL of a database that keeps the Optuna studies of
    the joint choices, instead of a file in the run's folder.
    """

    selector: Selector = "blame"
    attribution: bool = True
    local_objectives: bool = True
    objectives: Mapping[str, Annotated[str, AfterValidator(lambda name: _known_to(OBJECTIVES, name))]] = Field(
        default_factory=dict
    )
    settings: Mapping[str, Annotated[tuple[_Value, ...], Field(min_length=1)]] = Field(default_factory=dict)
    calls: Positive | None = None
    storage: Annotated[str, AfterValidator(storage_url)] | None = None


def _known_to(door: Door, name: str) -> str:
    try:
        door.check(name)
    except ConfigError as error:
        # Pydantic names the key itself.
        raise ValueError(str(error).removeprefix(f"{door.key}: ")) from None
    return name


def _with_commas(names: object) -> object:
    listed = isinstance(names, list | tuple) and names and all(isinstance(each, str) for each in names)
    return ",".join(names) if listed else names  # type: ignore[arg-type]


def _rounds(optimizers: str) -> int:
    return 1 if LOCAL_SEARCH in optimizers_of(optimizers) else 3


def _known_optimizers(names: str) -> str:
    return ",".join(_known_to(OPTIMIZERS, name) for name in optimizers_of(names))


class RunConfig(_Section):
    """One experiment. Relative paths are relative to the folder of the file they are in.

    `concurrency` is the number of concurrent requests to one endpoint: 8 by default, 1 for the embedded one.
    """

    system: Annotated[str, AfterValidator(partial(_known_to, SYSTEMS))] = "fact-memory"
    system_settings: Mapping[str, Any] = Field(default_factory=dict)
    modules: tuple[Path, ...] = ()
    """Folders of modules of your own (`module:Object`); by default that of the file, and the current one."""
    dataset: Annotated[str, AfterValidator(partial(_known_to, DATASETS))] = SAMPLE
    data: Path | None = None
    limits: DataLimits = DataLimits()
    locomo: LocomoSettings = LocomoSettings()
    models: Models = Models()
    metric: Annotated[str, AfterValidator(partial(_known_to, METRIC_DOOR))] = "short_contains"
    attribution: Annotated[str, AfterValidator(partial(_known_to, ATTRIBUTORS))] = SURVIVAL
    matcher: Annotated[str, AfterValidator(partial(_known_to, MATCHERS))] = WORDS
    """What decides whether a text carries what a question needs, for attribution and local objectives."""
    optimizer: Annotated[str, BeforeValidator(_with_commas), AfterValidator(_known_optimizers)] = LOCAL_SEARCH
    """One, or several side by side: a list, or names with commas between them."""
    proposers: Annotated[
        tuple[Annotated[str, AfterValidator(partial(_known_to, PROPOSERS))], ...],
        AfterValidator(lambda names: tuple(dict.fromkeys(names))),
    ] = Field(default=tuple(PROPOSERS.built_in), min_length=1)
    prompts: PromptSettings = PromptSettings()
    search: SearchSettings = SearchSettings()
    rounds: int = Field(
        default_factory=lambda given: 1 if LOCAL_SEARCH in optimizers_of(given.get("optimizer", "")) else 3, ge=0
    )
    """By default one with the local search, of which a round is a whole search, and three with other optimizers."""
    proposals: Positive = 4
    seed: int = 0
    concurrency: Positive | None = None
    executor: ExecutorSettings = ExecutorSettings()
    budget: BudgetSettings = BudgetSettings()
    tracking: Tracking = Tracking()
