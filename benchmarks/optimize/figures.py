"""What is measured of optimizers: of each run, of each contender over its seeds, and of pairs of contenders.

The unit is the held-out conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field

from benchmarks.optimize.contenders import OURS, current_contender
from experiments.runs.folder import BASELINE
from optimizer.evaluation.scores import Interval
from optimizer.evaluation.statistics import score_interval
from optimizer.gating.verdict import VerdictName, verdict_over

Conclusion = Literal["better", "worse", "inconclusive"]
ContenderName = Annotated[str, AfterValidator(current_contender)]

_CONCLUSIONS: Mapping[VerdictName, Conclusion] = {
    "improved": "better",
    "regressed": "worse",
    "inconclusive": "inconclusive",
}


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


def area_under(curve: Sequence[Point], budget: int) -> float:
    """The area under a curve of steps from 0 to `budget` calls, divided by the budget."""
    ends = [*(point.calls for point in curve[1:]), budget]
    steps = [(min(point.calls, budget), min(end, budget), point.score) for point, end in zip(curve, ends, strict=True)]
    return sum((end - start) * score for start, end, score in steps) / budget


def compared(runs: Sequence[ContenderRun]) -> tuple[SystemFigures, ...]:
    """The contenders of each system, as far as their runs are finished."""
    systems = dict.fromkeys(run.system for run in runs)
    return tuple(_system(name, [run for run in runs if run.system == name]) for name in systems)


def _system(name: str, runs: Sequence[ContenderRun]) -> SystemFigures:
    by_contender: dict[str, list[ContenderRun]] = {}
    for run in runs:
        by_contender.setdefault(run.contender, []).append(run)
    scores = {name: _by_conversation(own) for name, own in by_contender.items()}
    questions = max(len(runs[0].scores), *(run.questions for run in runs))
    contenders = [
        _contender(name, own, scores[name], scores.get(BASELINE), questions) for name, own in by_contender.items()
    ]
    ours = scores.get(OURS)
    return SystemFigures(
        system=name,
        conversations=len(runs[0].scores),
        contenders=tuple(sorted(contenders, key=lambda contender: -contender.score)),
        ours={name: _compare(ours, theirs, questions) for name, theirs in scores.items() if name != OURS}
        if ours
        else {},
    )


def _contender(
    name: str,
    runs: Sequence[ContenderRun],
    scores: Mapping[str, float],
    baseline: Mapping[str, float] | None,
    questions: int,
) -> ContenderFigures:
    units = list(scores.values())
    return ContenderFigures(
        contender=name,
        score=fmean(units),
        ci=score_interval(units, [questions / len(units)] * len(units)),
        by_seed={run.seed: fmean(run.scores.values()) for run in runs},
        against_baseline=_compare(scores, baseline, questions) if baseline is not None and name != BASELINE else None,
        calls=fmean(run.calls for run in runs),
        tokens=fmean(run.tokens for run in runs),
        minutes=fmean(run.minutes for run in runs),
        area=fmean(run.area for run in runs),
        rewritten=sum(run.rewritten for run in runs),
    )


def _by_conversation(runs: Sequence[ContenderRun]) -> dict[str, float]:
    return {conversation: fmean(run.scores[conversation] for run in runs) for conversation in runs[0].scores}


def _compare(ours: Mapping[str, float], theirs: Mapping[str, float], questions: int) -> ContenderComparison:
    verdict = verdict_over([ours[conversation] - theirs[conversation] for conversation in theirs], questions)
    return ContenderComparison(
        delta=verdict.delta, ci=verdict.delta_ci, p_value=verdict.p_value, conclusion=_CONCLUSIONS[verdict.verdict]
    )
