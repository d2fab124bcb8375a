"""What is measured of optimizers: of each run, of each contender over its seeds, and of pairs of contenders."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field

from experiments.runs.earlier_names import current_contender
from optimizer.evaluation.scores import Interval

Conclusion = Literal["better", "worse", "inconclusive"]
ContenderName = Annotated[str, AfterValidator(current_contender)]


class _Figures(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Point(_Figures):
    """The champion's score on validation once the search had made so many calls."""

    calls: int
    score: float


class ContenderRun(_Figures):
    """One run of a contender.

    `scores` are, by held-out conversation, the mean score of its questions under the champion, 0 if the champion fails
    on it (`failed`). `questions` are those of all; 0 in files of earlier versions, where one of each is reckoned with.
    `calls`, `tokens` and `minutes` are of the search alone, without baselines and test; calls include embeddings.

    `curve` begins with the baseline prompts and has a point at the end of each round. `area` is that under it up to the
    budget of calls, divided by that budget: the mean validation score of the champion over the budget, 0..1. A champion
    counts from the end of its round, and stays to the end of the budget if the search ends before. Optimizers that
    choose by validation look better by it than held-out. `code` is the digest of memtune's own source.
    """

    system: str
    contender: ContenderName
    seed: int
    scores: dict[str, float]
    failed: tuple[str, ...]
    questions: int = 0
    calls: int
    tokens: int
    minutes: float
    curve: tuple[Point, ...]
    area: float
    rewritten: bool
    stopped: str
    code: str


class ContenderComparison(_Figures):
    """A paired comparison with the held-out conversation as unit: the mean difference, its 95 % interval and p value.

    A conversation's score is the mean over the contender's seeds. The interval is None for a single conversation, and
    says nothing of how a contender varies from seed to seed. `conclusion` is by a two-sided sign-flip test at 5 %, not
    corrected for the number of comparisons.
    """

    delta: float
    ci: Interval | None
    p_value: float
    conclusion: Conclusion


class ContenderFigures(_Figures):
    """A contender over its seeds: held-out scores (`by_seed`), `rewritten` runs, and means of what a run has.

    `score` is held-out, the mean over conversations of the mean over seeds; `ci` its 95 % interval by conversation,
    None for a single one. `against_baseline` is None for the baseline prompts.
    """

    contender: ContenderName
    score: float
    ci: Interval | None
    by_seed: dict[int, float]
    against_baseline: ContenderComparison | None = Field(
        validation_alias=AliasChoices("against_baseline", "against_seed")
    )
    calls: float
    tokens: float
    minutes: float
    area: float
    rewritten: int


class SystemFigures(_Figures):
    """All contenders on one memory system of which a run has finished, the best held-out score first.

    `conversations` counts the held-out ones; `ours` has, by other contender, how the default search compares with it.
    """

    system: str
    conversations: int
    contenders: tuple[ContenderFigures, ...]
    ours: dict[str, ContenderComparison]


class OptimizeFigures(_Figures):
    """The whole comparison at `calls` a search: of the runs that it takes (`runs_planned`), `runs` are finished."""

    dataset: str
    model: str
    metric: str
    calls: int
    runs_planned: int
    systems: tuple[SystemFigures, ...]
    runs: tuple[ContenderRun, ...]
