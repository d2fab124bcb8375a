"""What a model's help adds to survival, over the confidence below which it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attribution.methods import better
from benchmarks.attribution_measuring import Announced, Make
from benchmarks.attribution_scores import Prediction, score
from benchmarks.labelled_cases import Suite
from benchmarks.labelled_suites import run
from experiments.bench.attribution import Progress
from tracing.llm.accounting.budget import Spending
from tracing.llm.accounting.price import price
from tracing.llm.accounting.token_counts import TokenCounts

if TYPE_CHECKING:
    from attribution.attributor import Attributor
    from attribution.cases import Attribution, Case
    from attribution.recordings import Recording
    from tracing.llm.access import ModelAccess

ROWS = 8
"""Thresholds at most, besides 0."""


_Costs = dict[int, Spending]
"""By the identity of the case."""


def measure(
    suite: Suite, first: Make, second: Make, access: ModelAccess, *, below: float, seed: int, progress: Progress
) -> dict[str, Any]:
    """Attribute each case by `first`, and by `second` where the first abstains or is less confident than `below`.

    Where both name something, the more confident counts, as in triage. Keys: n; asked, cases in which `second` was
    asked; thresholds, one row each from 0, which is `first` alone, up to `below`:
        below: the confidence below which `second` is asked, such that each row asks about as many more cases as the
            row before; equal confidences stay together. asked: share of the cases.
        eta, eta_ci, oia, oia_ci: as of `metrics.score`. helped, hurt: cases whose error type became right, and wrong.
        calls, tokens, money: means for a case, over all cases; money in the currency of the model's prices.
    hurt_cases: where the verdict became wrong at the highest threshold: the case, the truth and both verdicts.

    Raises:
        ValueError: no cases.
    """
    firsts = run(suite, first)
    unsure = [place for place, prediction in enumerate(firsts) if _confidence(prediction) < below]
    costs: _Costs = {}

    def watched(recording: Recording) -> Attributor:
        counted = _Watched(second(recording), access, costs)
        return Announced(counted, lambda: progress("second opinions", len(costs), len(unsure)))

    unsure_cases = Suite(suite.name, tuple(suite.cases[place] for place in unsure))
    seconds = dict(zip(unsure, run(unsure_cases, watched), strict=True)) if unsure else {}
    cost = {place: costs.get(id(suite.cases[place].case), Spending()) for place in unsure}
    thresholds = _thresholds([_confidence(firsts[place]) for place in unsure], below)
    rows = [_row(threshold, suite, firsts, seconds, cost, seed) for threshold in thresholds]
    return {
        "n": len(suite.cases),
        "asked": len(unsure),
        "thresholds": rows,
        "hurt_cases": _hurt(suite, firsts, seconds),
    }


def _thresholds(confidences: Sequence[float], below: float) -> list[float]:
    """From 0 to `below`, each one of the confidences that occur."""
    ordered = sorted(confidences)
    between = [ordered[len(ordered) * n // ROWS] for n in range(1, ROWS)] if ordered else []
    return sorted({0.0, below, *(confidence for confidence in between if confidence > ordered[0])})


class _Watched:
    """A method whose calls are counted case by case."""

    def __init__(self, method: Attributor, access: ModelAccess, costs: _Costs) -> None:
        self._method, self._access, self._costs = method, access, costs

    def attribute(self, case: Case) -> Attribution:
        with self._access.watch() as watch:
            try:
                return self._method.attribute(case)
            finally:
                spent = price(self._access.task.settings, TokenCounts(watch.prompt_tokens, watch.completion_tokens))
                self._costs[id(case)] = replace(spent, calls=watch.calls)


def _confidence(prediction: Prediction) -> float:
    """The confidence of a verdict; 0 for an abstention."""
    return prediction.attribution.main.confidence if prediction.attribution.main is not None else 0.0


def _row(
    threshold: float,
    suite: Suite,
    firsts: Sequence[Prediction],
    seconds: dict[int, Prediction],
    cost: dict[int, Spending],
    seed: int,
) -> dict[str, Any]:
    reconsidered = [place for place in seconds if _confidence(firsts[place]) < threshold]
    combined = list(firsts)
    for place in reconsidered:
        combined[place] = replace(
            firsts[place], attribution=better(firsts[place].attribution, seconds[place].attribution)
        )
    before, after = _right(suite, firsts), _right(suite, combined)
    figures = score(combined, suite, seed=seed)
    total = len(suite.cases)
    return {
        "below": threshold,
        "asked": len(reconsidered) / total,
        **{key: figures[key] for key in ("eta", "eta_ci", "oia", "oia_ci")},
        "helped": sum(not was and is_ for was, is_ in zip(before, after, strict=True)),
        "hurt": sum(was and not is_ for was, is_ in zip(before, after, strict=True)),
        **{
            key: sum(getattr(cost[place], key) for place in reconsidered) / total
            for key in ("calls", "tokens", "money")
        },
    }


def _right(suite: Suite, predictions: Sequence[Prediction]) -> list[bool]:
    pairs = zip(suite.cases, predictions, strict=True)
    return [_type(prediction.attribution) == labelled.error_type for labelled, prediction in pairs]


def _type(attribution: Attribution) -> str | None:
    return attribution.main.error_type if attribution.main is not None else None


def _hurt(suite: Suite, firsts: Sequence[Prediction], seconds: dict[int, Prediction]) -> list[dict[str, Any]]:
    rows = []
    for place, second in seconds.items():
        labelled, first = suite.cases[place], firsts[place].attribution
        combined = better(first, second.attribution)
        if _type(first) == labelled.error_type != _type(combined):
            rows.append(
                {
                    "question": labelled.case.question.question,
                    "truth": labelled.error_type,
                    "first": _type(first),
                    "first_confidence": _confidence(firsts[place]),
                    "second": _type(second.attribution),
                    "second_confidence": _confidence(second),
                }
            )
    return rows
