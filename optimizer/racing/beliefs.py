"""What is believed of a gain before all is measured, and what one more comparison is expected to bring."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from statistics import NormalDist
from typing import NamedTuple

_STANDARD = NormalDist()

_DRAWS = [_STANDARD.inv_cdf((number - 0.5) / 20) for number in range(1, 21)]
"""As likely values of a standard normal."""


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

    def measured(self, error: float, most: float) -> list[Prospect]:
        """What may be believed once a gain was measured with a standard error, and was at most so much."""
        highest, deviation = self.after(most, error)
        shift = math.sqrt(max(0.0, self.deviation**2 - deviation**2))
        return [Prospect(Belief(min(highest, self.mean + shift * draw), deviation), 1 / len(_DRAWS)) for draw in _DRAWS]


class Prospect(NamedTuple):
    """What may be believed after a measurement, and how likely that is."""

    belief: Belief
    chance: float


class Venture(NamedTuple):
    """What going on with something is expected to gain, and the calls that it takes."""

    gain: float
    calls: float

    @property
    def rate(self) -> float:
        """The expected gain a call."""
        return self.gain / self.calls if self.calls else 0.0


NOTHING = Venture(0.0, 0.0)


def rate_of_measuring(
    prospects: Iterable[Prospect], calls: float, venture: Callable[[Belief], Venture], rival: Venture = NOTHING
) -> float:
    """The expected gain a call of a measurement and of what is best after it.

    That is the better of two courses, each with the best bar for what is good enough: to go on with this or else with
    the rival, or with this alone, which counts as far as it is better than the rival. With the bar goes what a box is
    worth that costs something to open (Weitzman 1979).

    Args:
        prospects: of the measurement.
        calls: that it takes.
        venture: to go on with what was measured, by what is believed then.
        rival: to go on with something else.

    Example:
        >>> sure = [Prospect(Belief(0.2, 0.0), 1.0)]
        >>> rate_of_measuring(sure, 10, lambda belief: Venture(belief.mean, 90))
        0.002
    """
    best = gain = ahead = going_on = 0.0
    otherwise = 1.0
    ventures = ((venture(belief), chance) for belief, chance in prospects)
    for (expected, taken), chance in sorted(ventures, reverse=True):
        gain += chance * expected
        ahead += chance * max(0.0, expected - rival.gain)
        going_on += chance * taken
        otherwise = max(0.0, otherwise - chance)
        either = Venture(gain + otherwise * rival.gain, calls + going_on + otherwise * rival.calls)
        best = max(best, either.rate, Venture(ahead, calls + going_on).rate)
    return best


def _expected_part(mean: float, deviation: float) -> float:
    """The mean of what of a normal distribution is above 0, where what is below counts as 0."""
    if deviation <= 0:
        return max(0.0, mean)
    at = mean / deviation
    # A search asks this often: `NormalDist` takes three times as long.
    return mean * 0.5 * math.erfc(-at / math.sqrt(2)) + deviation * math.exp(-at * at / 2) / math.sqrt(2 * math.pi)
