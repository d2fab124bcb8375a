"""Agreement of annotators: published worked examples, and what is not defined stays undefined."""

from pathlib import Path

import pytest
from annotated_traces import write_trace
from sklearn.metrics import cohen_kappa_score

from attribution.cases import ErrorType
from experiments.annotating.annotator_agreement import agreement_of, cohen_kappa, krippendorff_alpha
from experiments.annotating.labels import Assessment, CaseId, Label, LabelStore
from experiments.command import main

# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections A, B and C: a row for each observer.
BINARY = ("0100000010", "1110010000")
NOMINAL = ("aabbdcccedda", "babbbccceddd")
MISSING = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def units(rows: tuple[str, ...]) -> list[list[str]]:
    return [[one for one in column if one != "."] for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(("rows", "alpha"), [(BINARY, 0.095), (NOMINAL, 0.692), (MISSING, 0.743)])
def test_alpha_is_that_of_the_published_examples(rows: tuple[str, ...], alpha: float) -> None:
    assert krippendorff_alpha(units(rows)) == pytest.approx(alpha, abs=0.0006)


def test_kappa_is_that_of_scikit_learn() -> None:
    left, right = NOMINAL
    assert cohen_kappa(list(zip(left, right, strict=True))) == pytest.approx(cohen_kappa_score(list(left), list(right)))


def test_what_is_not_defined_is_not_a_number() -> None:
    assert cohen_kappa([]) is None
    assert cohen_kappa([("a", "a"), ("a", "a")]) is None
    assert krippendorff_alpha([["a", "a"], ["a", "a"]]) is None
    assert krippendorff_alpha([["a"], ["b"], []]) is None


def label(annotator: str, case: str, error_type: ErrorType | None, *operations: str, method: str = "") -> Label:
    action = "rejected" if error_type is None else "accepted" if method else "labelled"
    assessment = Assessment(action, error_type, operations, method=method)
    return Label(annotator, CaseId("t", case), 1, 1, 0, 0.0, "t.jsonl", assessment)


def test_a_report_counts_shared_cases_and_names_the_disputed_ones() -> None:
    found = agreement_of(
        [
            label("ann", "1", "ExtractionError", "o1", method="survival"),
            label("ben", "1", "ExtractionError", "o1", method="survival"),
            label("ann", "2", "ResponseError", "o2"),
            label("ben", "2", "RetrievalError", "o3"),
            label("ann", "3", "UpdateError", "o4"),
            label("ben", "4", None, method="survival"),
        ],
        {"t"},
    )
    assert (found.labelled, found.shared) == ({"ann": 3, "ben": 2}, 2)
    assert found.disputed == (CaseId("t", "2"),)
    assert found.accepted == {"survival": (2, 3)}
    ((first, second, cases, kappa, _),) = [
        (one.first, one.second, one.cases, one.error_type, one.operations) for one in found.pairs
    ]
    assert (first, second, cases) == ("ann", "ben", 2)
    assert kappa == pytest.approx(cohen_kappa_score(["E", "R"], ["E", "T"]))


def test_labels_of_traces_that_are_not_open_do_not_count() -> None:
    labels = [label("ann", "1", "ExtractionError", method="survival"), label("ben", "1", "ResponseError")]
    found = agreement_of(labels, {"other"})
    assert (found.labelled, found.shared, found.disputed, found.accepted, found.elsewhere) == ({}, 0, (), {}, 2)


def test_the_command_counts_the_labels_of_the_traces_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_trace(tmp_path / "a.jsonl")
    labels = tmp_path / "labels.sqlite"
    LabelStore(labels).add("ann", CaseId("elsewhere", "v1"), Assessment("labelled", "UpdateError"), request="1")
    with pytest.raises(SystemExit):
        main(["annotate", str(tmp_path / "a.jsonl"), "--labels", str(labels), "--agreement"])
    said = capsys.readouterr().out
    assert "ann:" not in said
    assert "left out: 1 label of traces that are not open" in said
