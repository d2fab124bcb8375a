"""From finished runs to figures of contenders, with the held-out conversation as unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from experiments.bench.optimize.contenders import OURS
from experiments.bench.optimize.figures import (
    Conclusion,
    ContenderComparison,
    ContenderFigures,
    ContenderRun,
    Point,
    SystemFigures,
)
from experiments.runs.folder import BASELINE
from optimizer.evaluation.intervals import score_interval
from optimizer.gating.verdict import VerdictName, verdict_over

_CONCLUSIONS: Mapping[VerdictName, Conclusion] = {
    "improved": "better",
    "regressed": "worse",
    "inconclusive": "inconclusive",
}


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
