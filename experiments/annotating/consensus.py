"""Several annotators' labels of one case as one label, where most of them agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from attribution.cases import ErrorType
from experiments.annotating.label_store import Label
from experiments.annotating.labels import CaseId


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
