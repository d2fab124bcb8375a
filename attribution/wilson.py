"""The Wilson interval of a share (Wilson 1927): never of no width, also where all of a few trials end alike."""

from __future__ import annotations

import math

Z = 1.959964
"""Of a two-sided level of 95 %."""


def wilson_interval(share: float, trials: float, *, z: float = Z) -> tuple[float, float]:
    """The interval of a share of independent trials; of their mean, too, where each lies between 0 and 1.

    Args:
        share: of the trials, 0 to 1.
        trials: how many, more than 0; the effective number may be a fraction.
        z: normal quantile of the level, by default of 95 %, two-sided.
    """
    middle = share + z * z / trials / 2
    reach = z * math.sqrt(max(0.0, share * (1 - share)) / trials + (z / trials) ** 2 / 4)
    whole = 1 + z * z / trials
    return max(0.0, (middle - reach) / whole), min(1.0, (middle + reach) / whole)
