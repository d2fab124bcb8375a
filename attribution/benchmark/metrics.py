"""How well predictions meet the labels of a suite: accuracies with intervals, calibration, and what they cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attribution.benchmark.confidence_curve import cross_fitted
from attribution.bootstrap import clustered_interval
from attribution.cases import Attribution, Blame

if TYPE_CHECKING:
    from attribution.labelled import LabelledCase, Suite
    from tracing.graph.execution_graph import ExecutionGraph

BINS = 10
_FARTHEST = 20


@dataclass(frozen=True, slots=True)
class Prediction:
    """A method's result for one case.

    Attributes:
        attribution: its verdict.
        tokens: sent and received for it.
        ms: milliseconds it took.
        failed: whether the method raised an error, or a model call that it made failed.
    """

    attribution: Attribution
    tokens: int = 0
    ms: float = 0.0
    failed: bool = False


@dataclass(frozen=True, slots=True)
class _Scored:
    labelled: LabelledCase
    prediction: Prediction

    @property
    def main(self) -> Blame | None:
        return self.prediction.attribution.main

    @property
    def type_right(self) -> bool:
        return self.main is not None and self.main.error_type == self.labelled.error_type

    @property
    def has_operation(self) -> bool:
        return bool(self.labelled.operation_ids)

    @property
    def operation_right(self) -> bool:
        return self.main is not None and self.main.operation_id in self.labelled.operation_ids

    @property
    def operation_acceptable(self) -> bool:
        return self.main is not None and self.main.operation_id in self.labelled.acceptable_op_ids

    @property
    def in_two(self) -> bool:
        attribution = self.prediction.attribution
        ranked = sorted(attribution.decisive, key=lambda blame: -blame.confidence) + list(attribution.alternatives)
        return any(blame.error_type == self.labelled.error_type for blame in ranked[:2])

    @property
    def distance(self) -> int | None:
        if self.main is None or self.main.operation_id is None or not self.has_operation:
            return None
        return _distance(self.labelled.recording.graph, self.main.operation_id, frozenset(self.labelled.operation_ids))


def score(predictions: Sequence[Prediction], suite: Suite, *, seed: int = 0) -> dict[str, Any]:
    """Score predictions, one for each case of the suite in its order; everything in the result is plain JSON.

    An abstention is never right; a blame without an operation names none. Keys:
        n: cases. eta: share of them with the right error type; eta_ci: its 95 % bootstrap interval over conversations,
            or over cases of fewer than ten.
        oia: share of the oia_n cases with a known operation where it is named; oia_acceptable: or an acceptable one.
        joint: error type and operation right, over the same cases. top2: the right error type among the two likeliest.
        majority_eta, random_eta: accuracy of always naming the most frequent type of this suite, and of drawing the
            type uniformly from those that occur in it.
        macro_f1: mean F1 over the types that occur in the labels. abstention: share of the cases abstained from.
        failed: number of cases where the method, or a model call that it made, failed.
        distance: mean number of steps from the named to the true operation, each over a variable that both have; 0 for
            the same.
        ece: expected calibration error (Guo et al. 2017), 10 bins of equal width, of the error type's confidence.
        ece_cross_fitted: the same with each fifth of the cases calibrated on the other four. If the method's own
            calibration was fitted on this suite, `ece` flatters it and this does not.
        tokens_per_case, ms_per_case: means. by_type, by_fault, by_condition: n, eta and oia for each. by_type has a row
            for every type that occurs or was named; its eta is the type's recall, `named` how often it was named, and
            `precision` the share of these that are right (None if it never was). cases: one row for each.
        confusion: for each true type, how often each type was named; "abstained" where none was.

    Raises:
        ValueError: the numbers of predictions and cases differ, or there are none.
    """
    scored = [_Scored(labelled, made) for labelled, made in zip(suite.cases, predictions, strict=True)]
    if not scored:
        raise ValueError(f"suite {suite.name} has no cases")
    n = len(scored)
    types = Counter(one.labelled.error_type for one in scored)
    located = [one for one in scored if one.has_operation]
    named = [one.operation_right for one in located]
    hits = [one.type_right for one in scored]
    sure = [(one.main.confidence, one.type_right) for one in scored if one.main is not None]
    distances = [distance for one in scored if (distance := one.distance) is not None]
    return {
        "n": n,
        "eta": _mean(hits),
        "eta_ci": _interval(scored, hits, seed),
        "oia": _mean(named),
        "oia_n": len(located),
        "oia_ci": _interval(located, named, seed),
        "oia_acceptable": _mean(one.operation_acceptable for one in located),
        "joint": _mean(one.operation_right and one.type_right for one in located),
        "top2": _mean(one.in_two for one in scored),
        "majority_eta": max(types.values()) / n,
        "random_eta": 1 / len(types),
        "macro_f1": _mean(_f1(scored, error_type) for error_type in types),
        "abstention": _mean(one.main is None for one in scored),
        "failed": sum(one.prediction.failed for one in scored),
        "distance": _mean(distances),
        "ece": calibration_error(sure),
        "ece_cross_fitted": calibration_error(cross_fitted(sure)),
        "tokens_per_case": _mean(one.prediction.tokens for one in scored),
        "ms_per_case": _mean(one.prediction.ms for one in scored),
        "by_type": _by_type(scored),
        "by_fault": _by([one for one in scored if one.labelled.fault], lambda one: str(one.labelled.fault)),
        "by_condition": _by([one for one in scored if one.labelled.condition], lambda one: str(one.labelled.condition)),
        "confusion": _confusion(scored),
        "cases": [_row(one) for one in scored],
    }


def _confusion(scored: Iterable[_Scored]) -> dict[str, dict[str, int]]:
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for one in scored:
        table[one.labelled.error_type][one.main.error_type if one.main else "abstained"] += 1
    return {true: dict(named) for true, named in table.items()}


def _row(one: _Scored) -> dict[str, Any]:
    main = one.main
    return {
        "conversation": one.labelled.case.conversation,
        "question_id": one.labelled.case.question.id,
        "question": one.labelled.case.question.question,
        "gold_type": one.labelled.error_type,
        "gold_operation_ids": list(one.labelled.operation_ids),
        "fault": one.labelled.fault,
        "condition": one.labelled.condition,
        "type": main.error_type if main else None,
        "operation": main.operation if main else None,
        "operation_id": main.operation_id if main else None,
        "confidence": main.confidence if main else None,
        "reason": main.reason if main else one.prediction.attribution.abstained,
        "type_right": one.type_right,
        "operation_right": one.operation_right if one.has_operation else None,
        "tokens": one.prediction.tokens,
        "ms": round(one.prediction.ms, 3),
    }


def _by(scored: Iterable[_Scored], key: Callable[[_Scored], str]) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[_Scored]] = defaultdict(list)
    for one in scored:
        groups[key(one)].append(one)
    return {
        name: {
            "n": len(group),
            "eta": _mean(one.type_right for one in group),
            "oia": _mean(one.operation_right for one in group if one.has_operation),
            "oia_n": sum(one.has_operation for one in group),
        }
        for name, group in sorted(groups.items())
    }


def _by_type(scored: Sequence[_Scored]) -> dict[str, dict[str, Any]]:
    """By error type, what was found of it and how often it was named rightly."""
    rows = _by(scored, lambda one: one.labelled.error_type)
    named: dict[str, list[bool]] = defaultdict(list)
    for one in scored:
        if one.main is not None:
            named[one.main.error_type].append(one.type_right)
    nothing = {"n": 0, "eta": None, "oia": None, "oia_n": 0}
    return {
        name: {**rows.get(name, nothing), "named": len(named[name]), "precision": _mean(named[name])}
        for name in sorted({*rows, *named})
    }


def _f1(scored: Iterable[_Scored], error_type: Hashable) -> float:
    true = named = both = 0
    for one in scored:
        is_true = one.labelled.error_type == error_type
        is_named = one.main is not None and one.main.error_type == error_type
        true, named, both = true + is_true, named + is_named, both + (is_true and is_named)
    return 2 * both / (true + named) if true + named else 0.0


def calibration_error(pairs: Sequence[tuple[float, bool]]) -> float | None:
    """Expected calibration error (Guo et al. 2017) of (confidence, right), 10 bins of equal width; None without any."""
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, right in pairs:
        bins[min(BINS - 1, int(confidence * BINS))].append((confidence, right))
    gaps = (abs(sum(right for _, right in one) - sum(sure for sure, _ in one)) for one in bins.values())
    return sum(gaps) / len(pairs) if pairs else None


def _interval(scored: Sequence[_Scored], hits: Sequence[bool], seed: int) -> list[float]:
    if not hits:
        return [0.0, 1.0]
    conversations = [one.labelled.case.conversation for one in scored]
    return list(clustered_interval(hits, conversations, seed=seed))


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return sum(listed) / len(listed) if listed else None


def _distance(graph: ExecutionGraph, start: str, goals: frozenset[str]) -> int | None:
    """Steps between two operations over the variables they share, in either direction: 0 for the same one."""
    seen, edge, steps = {start}, [start], 0
    while edge and steps <= _FARTHEST:
        if not goals.isdisjoint(edge):
            return steps
        following: dict[str, None] = {}
        for oid in edge:
            operation = graph.operations.get(oid)
            for vid in (*operation.input_ids(), *operation.output_ids()) if operation else ():
                for other in (*graph.producers(vid), *graph.consumers(vid)):
                    if other.id not in seen:
                        seen.add(other.id)
                        following[other.id] = None
        edge, steps = list(following), steps + 1
    return None
