"""Fitting the confidence of verdicts, and measuring it on the source that was left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from attribution.cases import OUTSIDE_THE_SYSTEM
from attribution.survival.calibration import Calibration, confidence_of, signs_of, stated_of
from benchmarks.attribution_scores import calibration_error
from benchmarks.calibration.verdicts import KnownVerdict
from tracing.errors import ConfigError

STRENGTH = 0.15
"""Inverse strength of the regularization: of 0.1, 0.15 and 0.25 the one with the best order on sources left out."""

LEAST_SURE = 0.1
"""The share of verdicts that a person looks at again."""

_ITERATIONS = 2000


def fit(verdicts: Sequence[KnownVerdict]) -> Calibration:
    """A logistic regression of being right on the signs of the grounds; a source counts as the root of its cases.

    Verdicts on the annotation and the judge are left out: their confidence is not from here.

    Raises:
        ConfigError: scikit-learn is missing.
        ValueError: all verdicts are right, or none is.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise ConfigError("fitting needs scikit-learn, which MLflow brings: pip install 'memtune[track]'") from None

    used = [
        verdict
        for verdict in verdicts
        if verdict.grounds.answered and verdict.grounds.error_type not in OUTSIDE_THE_SYSTEM
    ]
    counts = Counter(str(verdict.source) for verdict in used)
    signs = [signs_of(verdict.grounds) for verdict in used]
    weights = [_weight(counts, verdict.source) for verdict in used]
    model = LogisticRegression(C=STRENGTH, max_iter=_ITERATIONS)
    model.fit([list(row.values()) for row in signs], [verdict.right for verdict in used], sample_weight=weights)
    fitted = dict(zip(signs[0], map(float, model.coef_[0]), strict=True))
    return Calibration(
        round(float(model.intercept_[0]), 3), {sign: round(weight, 3) for sign, weight in fitted.items()}, dict(counts)
    )


def _weight(counts: Counter[str], source: str) -> float:
    roots = {name: math.sqrt(count) for name, count in counts.items()}
    return counts.total() * roots[source] / sum(roots.values()) / counts[source]


def measure(verdicts: Sequence[KnownVerdict]) -> dict[str, Any]:
    """The fit on all sources, and figures of each source under the fit on the others; plain JSON.

    Keys:
        fitted: constant, weights and cases of the fit on all verdicts.
        sources: for each source, and for each `parts` of it: n; right: the share of right verdicts; said: the mean
            confidence; ece: expected calibration error; stated_ece: that of the confidences as stated, before any
            calibration; auc: how likely a right verdict is surer than a wrong one, auc_ci: its 95 % interval by Hanley
            and McNeil (1982); None if all are right; found: the share of the wrong verdicts that are among the tenth it
            is least sure of, ties shared out; possible: the most it could be.
        all: the same of all verdicts together, each with the confidence of the fit that left its source out.
        complaints: of verdicts without a right answer, by part and for all, `n` and the share that is `right`.

    Raises:
        ConfigError: as of `fit`.
        ValueError: fewer than two sources, or a fit on which all verdicts are right or wrong.
    """
    complaints = [verdict for verdict in verdicts if not verdict.grounds.answered]
    verdicts = [verdict for verdict in verdicts if verdict.grounds.answered]
    sources = list(dict.fromkeys(verdict.source for verdict in verdicts))
    if len(sources) < 2:
        raise ValueError("leaving a source out needs two sources")
    confidences: list[tuple[KnownVerdict, float]] = []
    for source in sources:
        without = fit([verdict for verdict in verdicts if verdict.source != source])
        confidences += [
            (verdict, confidence_of(verdict.grounds, without)) for verdict in verdicts if verdict.source == source
        ]
    rows = {source: _figures([pair for pair in confidences if pair[0].source == source]) for source in sources}
    for source, row in rows.items():
        parts = _parts([verdict for verdict in verdicts if verdict.source == source])
        row["parts"] = {
            part: _figures([pair for pair in confidences if pair[0].source == source and pair[0].part == part])
            for part in parts
        }
    return {
        "fitted": asdict(fit(verdicts)),
        "sources": rows,
        "all": _figures(confidences),
        "complaints": {
            **{
                part: _share([verdict for verdict in complaints if verdict.part == part]) for part in _parts(complaints)
            },
            "all": _share(complaints),
        },
    }


def _parts(verdicts: Sequence[KnownVerdict]) -> list[str]:
    return list(dict.fromkeys(verdict.part for verdict in verdicts))


def _share(verdicts: Sequence[KnownVerdict]) -> dict[str, Any]:
    return {
        "n": len(verdicts),
        "right": sum(verdict.right for verdict in verdicts) / len(verdicts) if verdicts else None,
    }


def _figures(confidences: Sequence[tuple[KnownVerdict, float]]) -> dict[str, Any]:
    right = [verdict.right for verdict, _ in confidences]
    sure = [confidence for _, confidence in confidences]
    looked = max(1.0, LEAST_SURE * len(confidences))
    wrong = right.count(False)
    return {
        "n": len(confidences),
        "right": sum(right) / len(confidences),
        "said": sum(sure) / len(confidences),
        "ece": calibration_error(list(zip(sure, right, strict=True))),
        "stated_ece": calibration_error([(stated_of(verdict.grounds), verdict.right) for verdict, _ in confidences]),
        **_order(confidences),
        "found": _share_found(sure, right, looked) / wrong if wrong else None,
        "possible": min(1.0, looked / wrong) if wrong else None,
    }


def _order(confidences: Sequence[tuple[KnownVerdict, float]]) -> dict[str, Any]:
    right = [sure for verdict, sure in confidences if verdict.right]
    wrong = [sure for verdict, sure in confidences if not verdict.right]
    if not right or not wrong:
        return {"auc": None, "auc_ci": None}
    pairs = len(right) * len(wrong)
    auc = sum((good > bad) + 0.5 * (good == bad) for good in right for bad in wrong) / pairs
    both_right, both_wrong = auc / (2 - auc) - auc**2, 2 * auc**2 / (1 + auc) - auc**2
    spread = auc * (1 - auc) + (len(right) - 1) * both_right + (len(wrong) - 1) * both_wrong
    margin = 1.96 * math.sqrt(max(0.0, spread) / pairs)
    return {"auc": auc, "auc_ci": (max(0.0, auc - margin), min(1.0, auc + margin))}


def _share_found(sure: Sequence[float], right: Sequence[bool], looked: float) -> float:
    """How many wrong verdicts are among the `looked` least sure ones; of equally sure ones, the expected number."""
    groups: dict[float, list[bool]] = {}
    for confidence, is_right in zip(sure, right, strict=True):
        groups.setdefault(confidence, []).append(is_right)
    found = 0.0
    for _, group in sorted(groups.items()):
        share = min(1.0, looked / len(group))
        found += share * group.count(False)
        looked -= share * len(group)
        if looked <= 0:
            break
    return found
