"""How well two judges of the same cases agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """One judge's verdicts against another's.

    Attributes:
        n: cases that both judged.
        accuracy: share of them on which they agree.
        kappa: Cohen's kappa (Cohen 1960), agreement beyond chance; None if chance alone explains everything, as when
            both always say the same.
        auc: chance that the first judge's margin is higher for a case that the second calls right than for one that it
            calls wrong; None if the second gives all the same verdict.
    """

    n: int
    accuracy: float
    kappa: float | None
    auc: float | None


def agreement(verdicts: Sequence[tuple[bool, bool, float]]) -> Agreement | None:
    """Agreement over cases, each (first judge's verdict, second judge's verdict, first judge's margin).

    None without cases.
    """
    if not verdicts:
        return None
    n = len(verdicts)
    accuracy = sum(ours == theirs for ours, theirs, _ in verdicts) / n
    first, second = (sum(verdict[side] for verdict in verdicts) / n for side in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    kappa = None if chance == 1 else (accuracy - chance) / (1 - chance)
    right = [margin for _, theirs, margin in verdicts if theirs]
    wrong = [margin for _, theirs, margin in verdicts if not theirs]
    higher = sum((a > b) + 0.5 * (a == b) for a in right for b in wrong)
    return Agreement(n, accuracy, kappa, higher / (len(right) * len(wrong)) if right and wrong else None)
