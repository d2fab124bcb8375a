"""What several annotators say of the same cases: how well they agree, and what most of them say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from attribution.cases import ErrorType
from experiments.annotating.labels import CaseId, Label


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
    """Agreement of all annotators: Krippendorff's alpha on error type and operations; None where it is not defined.

    `labelled` counts cases by annotator, `shared` those that at least two labelled, `accepted` by method its verdicts
    accepted and all that were judged, `elsewhere` labels of traces that are not open, which do not count. On `disputed`
    cases annotators differ in error type or operations.
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
    by_case = {case: {label.annotator: label for label in of_case} for case, of_case in _by_case(open_labels).items()}
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
    """Agreement of two annotators of each case beyond chance (Cohen 1960); None if chance explains everything."""
    if not pairs:
        return None
    n = len(pairs)
    first, second = Counter(value for value, _ in pairs), Counter(right for _, right in pairs)
    observed = sum(first_value == second_value for first_value, second_value in pairs) / n
    chance = sum(first[value] * second[value] for value in first) / n**2
    return None if chance == 1 else (observed - chance) / (1 - chance)


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha of each case's nominal values, by any number of annotators, some of whom may be absent.

    Computed from coincidences as in Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C; None
    where all values are the same or no case has two.
    """
    pairable = [Counter(values) for values in units if len(values) > 1]
    totals = sum(pairable, Counter[Hashable]())
    n = totals.total()
    expected = n**2 - sum(total**2 for total in totals.values())
    if not expected:
        return None
    observed = sum(
        (counts.total() ** 2 - sum(count**2 for count in counts.values())) / (counts.total() - 1) for counts in pairable
    )
    return 1 - (n - 1) * observed / expected


def _type(label: Label) -> Hashable:
    return label.assessment.error_type


def _operations(label: Label) -> Hashable:
    return frozenset(label.assessment.operations)


def _by_case(labels: Iterable[Label]) -> Mapping[CaseId, list[Label]]:
    """The labels with an error type."""
    by_case: dict[CaseId, list[Label]] = defaultdict(list)
    for label in labels:
        if label.assessment.error_type is not None:
            by_case[label.case].append(label)
    return by_case


def _acceptance_counts(labels: Iterable[Label]) -> dict[str, tuple[int, int]]:
    verdicts = [(label.assessment.method, label.assessment.action) for label in labels]
    judged = Counter(method for method, action in verdicts if method and action != "labelled")
    accepted = Counter(method for method, action in verdicts if action == "accepted")
    return {method: (accepted[method], judged[method]) for method in sorted(judged)}


@dataclass(frozen=True, slots=True)
class ConsensusLabel:
    """What most annotators of a case say: the error type, and what those name who gave it.

    Operations are decisive if at least half of them name them, otherwise acceptable; evidence is what any names.
    """

    error_type: ErrorType
    operations: tuple[str, ...]
    acceptable: tuple[str, ...]
    evidence: tuple[str, ...]
    labels: tuple[Label, ...]


def consensus_of(labels: Iterable[Label]) -> tuple[Mapping[CaseId, ConsensusLabel], tuple[CaseId, ...]]:
    """The cases with one most frequent error type, and those on which the annotators are divided."""
    consensus: dict[CaseId, ConsensusLabel] = {}
    divided: list[CaseId] = []
    for case, case_labels in _by_case(labels).items():
        types = Counter(error_type for label in case_labels if (error_type := label.assessment.error_type))
        (error_type, count), *others = types.most_common(2)
        if others and others[0][1] == count:
            divided.append(case)
        else:
            consensus[case] = _of_most(error_type, case_labels)
    return consensus, tuple(divided)


def _of_most(error_type: ErrorType, labels: list[Label]) -> ConsensusLabel:
    most = [label for label in labels if label.assessment.error_type == error_type]
    named = Counter(oid for label in most for oid in label.assessment.operations)
    decisive = tuple(oid for oid, count in named.items() if 2 * count >= len(most))
    rest = tuple(oid for oid in named if oid not in decisive)
    evidence = dict.fromkeys(vid for label in most for vid in label.assessment.evidence)
    return ConsensusLabel(error_type, decisive, rest, tuple(evidence), tuple(labels))
