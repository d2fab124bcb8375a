"""What is believed of a gain before all is measured, and what one more comparison is expected to bring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

USUAL_GAIN = 0.2
"""Standard deviation of what texts gain on recorded inputs, at least. A choice."""

USUAL_TEXTS = 4
"""Measured texts that tell as much of others as that choice does."""

_STANDARD = NormalDist()


class Belief(NamedTuple):
    """A gain that is normally distributed for all that is known.

    Example:
        >>> Belief(0.0, 0.15).after(0.4, 0.15)
        Belief(mean=0.2, deviation=0.10606601717798213)
    """

    mean: float
    deviation: float

    def after(self, gain: float, error: float) -> Belief:
        """The belief once a gain was measured with a standard error."""
        known = self.deviation**2 / (self.deviation**2 + error**2)
        return Belief(self.mean + known * (gain - self.mean), self.deviation * math.sqrt(1 - known))

    @property
    def doubt(self) -> float:
        """The chance that nothing is gained."""
        return _STANDARD.cdf(-self.mean / self.deviation)

    def improvement(self, least: float) -> float:
        """What is expected to be gained beyond the least by whoever may decline all else."""
        return _expected_part(self.mean - least, self.deviation)

    def lead(self, other: Belief) -> float:
        """How much this is expected to be ahead of another, where being behind counts as 0."""
        return _expected_part(self.mean - other.mean, math.hypot(self.deviation, other.deviation))

    def learned(self, error: float, rival: float) -> float:
        """How much more is expected of the better of this and a rival, once this is measured with a standard error.

        The knowledge gradient (Frazier, Powell and Dayanik 2008).
        """
        shift = self.deviation**2 / math.hypot(self.deviation, error)
        return _expected_part(-abs(self.mean - rival), shift)


def believed_of_new(gains: Sequence[tuple[float, float]]) -> Belief:
    """What the next text gains, by the gains of those before it, each with its standard error.

    It may differ from them by `USUAL_GAIN` however alike they are: few texts gain much, and many gain nothing before.
    """
    usual = Belief(0.0, USUAL_GAIN)
    beliefs = [*[usual] * USUAL_TEXTS, *(usual.after(gain, error) for gain, error in gains)]
    mean = sum(belief.mean for belief in beliefs) / len(beliefs)
    squares = sum((belief.mean - mean) ** 2 + belief.deviation**2 for belief in beliefs)
    return Belief(mean, max(USUAL_GAIN, math.sqrt(squares / len(beliefs))))


def _expected_part(mean: float, deviation: float) -> float:
    """The mean of what of a normal distribution is above 0, where what is below counts as 0."""
    if deviation <= 0:
        return max(0.0, mean)
    at = mean / deviation
    return mean * _STANDARD.cdf(at) + deviation * _STANDARD.pdf(at)
