"""How well predictions meet the labels of a suite: accuracies with intervals, calibration, and what they cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attribution.cases import Attribution, Blame
from attribution.confidence_intervals import clustered_interval

if TYPE_CHECKING:
    from benchmarks.labelled_cases import LabelledCase, Suite
    from tracing.graph.execution_graph import ExecutionGraph

BINS = 10
_FARTHEST = 20


@dataclass(frozen=True, slots=True)
class Prediction:
    """A method's result for one case: its verdict, tokens and milliseconds, and whether it or a model call failed."""

    attribution: Attribution
    tokens: int = 0
    ms: float = 0.0
    failed: bool = False


@dataclass(frozen=True, slots=True)
class _ScoredCase:
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
        tokens_per_case, ms_per_case: means. by_type, by_fault, by_condition: n, eta and oia for each. by_type has a row
            for every type that occurs or was named; its eta is the type's recall, `named` how often it was named, and
            `precision` the share of these that are right (None if it never was). cases: one row for each.
        confusion: for each true type, how often each type was named; "abstained" where none was.

    Raises:
        ValueError: the numbers of predictions and cases differ, or there are none.
    """
    scored = [_ScoredCase(labelled, prediction) for labelled, prediction in zip(suite.cases, predictions, strict=True)]
    if not scored:
        raise ValueError(f"suite {suite.name} has no cases")
    n = len(scored)
    types = Counter(case.labelled.error_type for case in scored)
    located = [case for case in scored if case.has_operation]
    named = [case.operation_right for case in located]
    hits = [case.type_right for case in scored]
    sure = [(case.main.confidence, case.type_right) for case in scored if case.main is not None]
    distances = [distance for case in scored if (distance := case.distance) is not None]
    return {
        "n": n,
        "eta": _mean(hits),
        "eta_ci": _interval(scored, hits, seed),
        "oia": _mean(named),
        "oia_n": len(located),
        "oia_ci": _interval(located, named, seed),
        "oia_acceptable": _mean(case.operation_acceptable for case in located),
        "joint": _mean(case.operation_right and case.type_right for case in located),
        "top2": _mean(case.in_two for case in scored),
        "majority_eta": max(types.values()) / n,
        "random_eta": 1 / len(types),
        "macro_f1": _mean(_f1(scored, error_type) for error_type in types),
        "abstention": _mean(case.main is None for case in scored),
        "failed": sum(case.prediction.failed for case in scored),
        "distance": _mean(distances),
        "ece": calibration_error(sure),
        "tokens_per_case": _mean(case.prediction.tokens for case in scored),
        "ms_per_case": _mean(case.prediction.ms for case in scored),
        "by_type": _by_type(scored),
        "by_fault": _by(scored, lambda case: case.labelled.fault),
        "by_condition": _by(scored, lambda case: case.labelled.condition),
        "confusion": _confusion(scored),
        "cases": [_row(case) for case in scored],
    }


def _confusion(scored: Iterable[_ScoredCase]) -> dict[str, dict[str, int]]:
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for case in scored:
        table[case.labelled.error_type][case.main.error_type if case.main else "abstained"] += 1
    return {true: dict(named) for true, named in table.items()}


def _row(case: _ScoredCase) -> dict[str, Any]:
    main = case.main
    return {
        "conversation": case.labelled.case.conversation,
        "question_id": case.labelled.case.question.id,
        "question": case.labelled.case.question.question,
        "gold_type": case.labelled.error_type,
        "gold_operation_ids": list(case.labelled.operation_ids),
        "fault": case.labelled.fault,
        "condition": case.labelled.condition,
        "type": main.error_type if main else None,
        "operation": main.operation if main else None,
        "operation_id": main.operation_id if main else None,
        "confidence": main.confidence if main else None,
        "reason": main.reason if main else case.prediction.attribution.abstained,
        "type_right": case.type_right,
        "operation_right": case.operation_right if case.has_operation else None,
        "tokens": case.prediction.tokens,
        "ms": round(case.prediction.ms, 3),
    }


def _by(scored: Iterable[_ScoredCase], key: Callable[[_ScoredCase], str | None]) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[_ScoredCase]] = defaultdict(list)
    for case in scored:
        if name := key(case):
            groups[name].append(case)
    return {
        name: {
            "n": len(group),
            "eta": _mean(case.type_right for case in group),
            "oia": _mean(case.operation_right for case in group if case.has_operation),
            "oia_n": sum(case.has_operation for case in group),
        }
        for name, group in sorted(groups.items())
    }


def _by_type(scored: Sequence[_ScoredCase]) -> dict[str, dict[str, Any]]:
    """By error type, what was found of it and how often it was named rightly."""
    rows = _by(scored, lambda case: case.labelled.error_type)
    named: dict[str, list[bool]] = defaultdict(list)
    for case in scored:
        if case.main is not None:
            named[case.main.error_type].append(case.type_right)
    nothing = {"n": 0, "eta": None, "oia": None, "oia_n": 0}
    return {
        name: {**rows.get(name, nothing), "named": len(named[name]), "precision": _mean(named[name])}
        for name in sorted({*rows, *named})
    }


def _f1(scored: Iterable[_ScoredCase], error_type: Hashable) -> float:
    true = named = both = 0
    for case in scored:
        is_true = case.labelled.error_type == error_type
        is_named = case.main is not None and case.main.error_type == error_type
        true, named, both = true + is_true, named + is_named, both + (is_true and is_named)
    return 2 * both / (true + named) if true + named else 0.0


def calibration_error(pairs: Sequence[tuple[float, bool]]) -> float | None:
    """Expected calibration error (Guo et al. 2017) of (confidence, right), 10 bins of equal width; None without any."""
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, right in pairs:
        bins[min(BINS - 1, int(confidence * BINS))].append((confidence, right))
    gaps = (
        abs(sum(right for _, right in pairs_in_bin) - sum(sure for sure, _ in pairs_in_bin))
        for pairs_in_bin in bins.values()
    )
    return sum(gaps) / len(pairs) if pairs else None


def _interval(scored: Sequence[_ScoredCase], hits: Sequence[bool], seed: int) -> list[float]:
    if not hits:
        return [0.0, 1.0]
    conversations = [case.labelled.case.conversation for case in scored]
    return list(clustered_interval(hits, conversations, seed=seed))


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return sum(listed) / len(listed) if listed else None


def _distance(graph: ExecutionGraph, start: str, goals: frozenset[str]) -> int | None:
    """Steps between two operations over the variables they share, in either direction: 0 for the same one."""
    visited, edge, steps = {start}, [start], 0
    while edge and steps <= _FARTHEST:
        if not goals.isdisjoint(edge):
            return steps
        following: dict[str, None] = {}
        for oid in edge:
            operation = graph.operations.get(oid)
            for vid in (*operation.input_ids(), *operation.output_ids()) if operation else ():
                for other in (*graph.producers(vid), *graph.consumers(vid)):
                    if other.id not in visited:
                        visited.add(other.id)
                        following[other.id] = None
        edge, steps = list(following), steps + 1
    return None
