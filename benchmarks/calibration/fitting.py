"""Fitting the confidence of verdicts, and measuring it on the source that was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from attribution.benchmark.metrics import calibration_error
from attribution.cases import OUTSIDE_THE_SYSTEM
from attribution.survival.calibration import Calibration, confidence_of, signs_of, stated_of
from benchmarks.calibration.verdicts import KnownVerdict
from tracing.errors import ConfigError

STRENGTH = 0.1
"""Inverse strength of the regularization: of 0.01, 0.1 and 1 the one with the least error on sources left out."""

LEAST_SURE = 0.1
"""The share of verdicts that triage looks at again."""

_ITERATIONS = 2000


def fit(verdicts: Sequence[KnownVerdict]) -> Calibration:
    """A logistic regression of being right on the signs of the grounds; each source counts alike.

    Verdicts on the annotation and the judge are left out: their confidence is not from here.

    Raises:
        ConfigError: scikit-learn is missing.
        ValueError: all verdicts are right, or none is.
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise ConfigError("fitting needs scikit-learn, which MLflow brings: pip install 'memtune[track]'") from None

    used = [one for one in verdicts if one.grounds.answered and one.grounds.error_type not in OUTSIDE_THE_SYSTEM]
    counts = Counter(str(one.source) for one in used)
    signs = [signs_of(one.grounds) for one in used]
    weights = [len(used) / len(counts) / counts[one.source] for one in used]
    model = LogisticRegression(C=STRENGTH, max_iter=_ITERATIONS)
    model.fit([list(one.values()) for one in signs], [one.right for one in used], sample_weight=weights)
    fitted = dict(zip(signs[0], map(float, model.coef_[0]), strict=True))
    return Calibration(
        round(float(model.intercept_[0]), 3), {sign: round(one, 3) for sign, one in fitted.items()}, dict(counts)
    )


def measure(verdicts: Sequence[KnownVerdict]) -> dict[str, Any]:
    """The fit on all sources, and figures of each source under the fit on the others; plain JSON.

    Keys:
        fitted: constant, weights and cases of the fit on all verdicts.
        sources: for each source, and for each `parts` of it: n; right: the share of right verdicts; said: the mean
            confidence; ece: expected calibration error; stated_ece: that of the confidences as stated, before any
            calibration; found: the share of the wrong verdicts that are among the tenth it is least sure of, ties
            shared out; possible: the most it could be.
        all: the same of all verdicts together, each with the confidence of the fit that left its source out.
        complaints: of verdicts without a right answer, by part and for all, `n` and the share that is `right`.

    Raises:
        ConfigError: as of `fit`.
        ValueError: fewer than two sources, or a fit on which all verdicts are right or wrong.
    """
    complaints = [one for one in verdicts if not one.grounds.answered]
    verdicts = [one for one in verdicts if one.grounds.answered]
    sources = list(dict.fromkeys(one.source for one in verdicts))
    if len(sources) < 2:
        raise ValueError("leaving a source out needs two sources")
    made: list[tuple[KnownVerdict, float]] = []
    for source in sources:
        without = fit([one for one in verdicts if one.source != source])
        made += [(one, confidence_of(one.grounds, without)) for one in verdicts if one.source == source]
    rows = {source: _figures([one for one in made if one[0].source == source]) for source in sources}
    for source, row in rows.items():
        parts = _parts([one for one in verdicts if one.source == source])
        row["parts"] = {
            part: _figures([one for one in made if one[0].source == source and one[0].part == part]) for part in parts
        }
    return {
        "fitted": asdict(fit(verdicts)),
        "sources": rows,
        "all": _figures(made),
        "complaints": {
            **{part: _share([one for one in complaints if one.part == part]) for part in _parts(complaints)},
            "all": _share(complaints),
        },
    }


def _parts(verdicts: Sequence[KnownVerdict]) -> list[str]:
    return list(dict.fromkeys(one.part for one in verdicts))


def _share(verdicts: Sequence[KnownVerdict]) -> dict[str, Any]:
    return {"n": len(verdicts), "right": sum(one.right for one in verdicts) / len(verdicts) if verdicts else None}


def _figures(made: Sequence[tuple[KnownVerdict, float]]) -> dict[str, Any]:
    right = [one.right for one, _ in made]
    sure = [confidence for _, confidence in made]
    looked = max(1.0, LEAST_SURE * len(made))
    wrong = right.count(False)
    return {
        "n": len(made),
        "right": sum(right) / len(made),
        "said": sum(sure) / len(made),
        "ece": calibration_error(list(zip(sure, right, strict=True))),
        "stated_ece": calibration_error([(stated_of(one.grounds), one.right) for one, _ in made]),
        "found": _found(sure, right, looked) / wrong if wrong else None,
        "possible": min(1.0, looked / wrong) if wrong else None,
    }


def _found(sure: Sequence[float], right: Sequence[bool], looked: float) -> float:
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
