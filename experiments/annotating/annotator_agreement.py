"""What several annotators say of the same cases: how well they agree, and what most of them say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from attribution.cases import ErrorType
from experiments.annotating.label_store import Label
from experiments.annotating.labels import CaseId


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Two annotators: the cases that both labelled, and Cohen's kappa on the error type and on the operations."""

    first: str
    second: str
    cases: int
    error_type: float | None
    operations: float | None


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """Agreement of all annotators.

    Attributes:
        labelled: annotator → cases labelled.
        shared: cases that at least two labelled.
        error_type, operations: Krippendorff's alpha; None where it is not defined.
        pairs: each two annotators with a case in common.
        disputed: cases on which annotators differ in error type or operations.
        accepted: method → its verdicts accepted, and those that were accepted, corrected or rejected.
        elsewhere: labels of traces that are not open, which do not count.
    """

    labelled: Mapping[str, int]
    shared: int
    error_type: float | None
    operations: float | None
    pairs: tuple[PairAgreement, ...]
    disputed: tuple[CaseId, ...]
    accepted: Mapping[str, tuple[int, int]]
    elsewhere: int


def agreement_of(labels: Iterable[Label], traces: Container[str]) -> AgreementReport:
    """The agreement of labels in force, on cases of these traces.

    A rejected verdict without an error type is no label of the case.
    """
    in_force = list(labels)
    open_labels = [label for label in in_force if label.case.trace in traces]
    by_case: dict[CaseId, dict[str, Label]] = defaultdict(dict)
    for label in open_labels:
        if label.assessment.error_type is not None:
            by_case[label.case][label.annotator] = label
    shared = {case: by for case, by in by_case.items() if len(by) > 1}
    annotators = sorted({name for by in by_case.values() for name in by})
    pairs = [_pair(first, second, shared.values()) for first, second in combinations(annotators, 2)]
    disputed = [
        case for case, by in shared.items() if len({(_type(label), _operations(label)) for label in by.values()}) > 1
    ]
    return AgreementReport(
        dict(Counter(name for by in by_case.values() for name in by)),
        len(shared),
        krippendorff_alpha([[_type(label) for label in by.values()] for by in shared.values()]),
        krippendorff_alpha([[_operations(label) for label in by.values()] for by in shared.values()]),
        tuple(pair for pair in pairs if pair.cases),
        tuple(disputed),
        _acceptance_counts(open_labels),
        len(in_force) - len(open_labels),
    )


def _pair(first: str, second: str, shared: Iterable[Mapping[str, Label]]) -> PairAgreement:
    both = [(by[first], by[second]) for by in shared if first in by and second in by]
    return PairAgreement(
        first,
        second,
        len(both),
        cohen_kappa([(_type(label), _type(other_label)) for label, other_label in both]),
        cohen_kappa([(_operations(label), _operations(other_label)) for label, other_label in both]),
    )


def cohen_kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Agreement of two annotators beyond chance (Cohen 1960); None if chance alone explains everything.

    Args:
        pairs: for each case, what the one and the other said.
    """
    if not pairs:
        return None
    n = len(pairs)
    first, second = Counter(value for value, _ in pairs), Counter(right for _, right in pairs)
    observed = sum(first_value == second_value for first_value, second_value in pairs) / n
    chance = sum(first[value] * second[value] for value in first) / n**2
    return None if chance == 1 else (observed - chance) / (1 - chance)


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha for nominal values of any number of annotators, some of which may be missing.

    Computed from coincidences as in Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C; None
    where all values are the same or no case has two.

    Args:
        units: for each case, the values that it was given, in any order.
    """
    coincidences: Counter[tuple[Hashable, Hashable]] = Counter()
    for values in units:
        counts, value_count = Counter(values), len(values)
        for first_value, second_value in ((a, b) for a in counts for b in counts if value_count > 1):
            pairs = counts[first_value] * (counts[second_value] - (first_value == second_value))
            coincidences[first_value, second_value] += pairs / (value_count - 1)  # type: ignore[assignment]
    totals: Counter[Hashable] = Counter()
    for (first_value, _), weight in coincidences.items():
        totals[first_value] += weight
    n = sum(totals.values())
    expected = n**2 - sum(total**2 for total in totals.values())
    if not expected:
        return None
    observed = sum(
        weight for (first_value, second_value), weight in coincidences.items() if first_value != second_value
    )
    return 1 - (n - 1) * observed / expected


def _type(label: Label) -> Hashable:
    return label.assessment.error_type


def _operations(label: Label) -> Hashable:
    return frozenset(label.assessment.operations)


def _acceptance_counts(labels: Iterable[Label]) -> dict[str, tuple[int, int]]:
    assessments = [
        label.assessment for label in labels if label.assessment.method and label.assessment.action != "labelled"
    ]
    return {
        method: (
            sum(assessment.action == "accepted" for assessment in assessments if assessment.method == method),
            sum(assessment.method == method for assessment in assessments),
        )
        for method in sorted({assessment.method for assessment in assessments})
    }


@dataclass(frozen=True, slots=True)
class ConsensusLabel:
    """What the annotators say about a case.

    Attributes:
        error_type: of most of them.
        operations: the decisive ones that at least half of these name; one or more, or none.
        acceptable: those that fewer of these name.
        evidence: variables that any of these name.
        labels: everyone's, for the record.
    """

    error_type: ErrorType
    operations: tuple[str, ...]
    acceptable: tuple[str, ...]
    evidence: tuple[str, ...]
    labels: tuple[Label, ...]


def consensus_of(labels: Iterable[Label]) -> tuple[Mapping[CaseId, ConsensusLabel], tuple[CaseId, ...]]:
    """The cases with one most frequent error type, and those on which the annotators are divided."""
    by_case: dict[CaseId, list[Label]] = defaultdict(list)
    for label in labels:
        if label.assessment.error_type is not None:
            by_case[label.case].append(label)
    consensus: dict[CaseId, ConsensusLabel] = {}
    divided: list[CaseId] = []
    for case, case_labels in by_case.items():
        types = Counter(label.assessment.error_type for label in case_labels).most_common(2)
        if len(types) > 1 and types[0][1] == types[1][1]:
            divided.append(case)
        else:
            consensus[case] = _of_most(types[0][0], case_labels)
    return consensus, tuple(divided)


def _of_most(error_type: ErrorType | None, labels: list[Label]) -> ConsensusLabel:
    assert error_type is not None  # noqa: S101 (those without were left out)
    most = [label for label in labels if label.assessment.error_type == error_type]
    named = Counter(oid for label in most for oid in label.assessment.operations)
    decisive = tuple(oid for oid, count in named.items() if 2 * count >= len(most))
    rest = tuple(oid for oid in named if oid not in decisive)
    evidence = dict.fromkeys(vid for label in most for vid in label.assessment.evidence)
    return ConsensusLabel(error_type, decisive, rest, tuple(evidence), tuple(labels))
