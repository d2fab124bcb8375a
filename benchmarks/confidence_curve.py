"""Calibration of stated confidences on labelled cases, to tell how good a method's own calibration is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

GROUPS, SHRINKAGE = 4, 4.0
"""Groups of cases for a curve, and cases at the mean rate added to each. A choice for about 80 cases."""


@dataclass(frozen=True, slots=True)
class ConfidenceCurve:
    """An increasing piecewise linear map from a method's stated confidence to how often it is then right.

    Above the points it is constant; below them, where few cases were seen, it falls proportionally to 0.
    """

    points: tuple[tuple[float, float], ...]

    def __call__(self, confidence: float) -> float:
        """The calibrated confidence."""
        at = bisect_right(self.points, (confidence, 2.0))
        if at == len(self.points):
            return self.points[-1][1]
        (low, first), (high, last) = self.points[at - 1] if at else (0.0, 0.0), self.points[at]
        return first + (last - first) * (confidence - low) / (high - low)


def fit(pairs: Sequence[tuple[float, bool]]) -> ConfidenceCurve:
    """Fit on (confidence, right): groups of similar size, shrunk towards the mean, pooled until increasing (isotonic).

    Equal confidences stay in one group, since their cases cannot be distinguished.

    Raises:
        ValueError: no pairs.
    """
    if not pairs:
        raise ValueError("calibration needs labelled cases")
    mean = sum(right for _, right in pairs) / len(pairs)
    ordered = sorted(pairs)
    size = max(1, len(ordered) // GROUPS)
    pools: list[tuple[float, float, int]] = []  # sum of confidences, sum of right ones, cases
    start = 0
    while start < len(ordered):
        last = ordered[min(start + size, len(ordered)) - 1][0]
        group = [pair for pair in ordered[start:] if pair[0] <= last]
        start += len(group)
        pools.append((sum(confidence for confidence, _ in group), float(sum(right for _, right in group)), len(group)))
        while len(pools) > 1 and _rate(pools[-2], mean) >= _rate(pools[-1], mean):
            (a, b, n), (c, d, m) = pools[-2], pools[-1]
            pools[-2:] = [(a + c, b + d, n + m)]
    points = tuple((round(pool[0] / pool[2], 3), round(_rate(pool, mean), 3)) for pool in pools)
    return ConfidenceCurve(points)


def cross_fitted(pairs: Sequence[tuple[float, bool]], folds: int = 5) -> list[tuple[float, bool]]:
    """The pairs with each confidence calibrated on the other folds, to measure how good calibration is."""
    calibrated: list[tuple[float, bool]] = []
    for at, (confidence, right) in enumerate(pairs):
        others = [pair for other, pair in enumerate(pairs) if other % folds != at % folds]
        calibrated.append((fit(others)(confidence) if others else confidence, right))
    return calibrated


def _rate(pool: tuple[float, float, int], mean: float) -> float:
    return (pool[1] + SHRINKAGE * mean) / (pool[2] + SHRINKAGE)
