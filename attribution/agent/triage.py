"""Two methods of attribution, the costly one only where the cheap one is unsure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attribution.cases import Attribution, Case
from attribution.explanations import Explained, explained
from tracing.errors import OutOfTimeError

if TYPE_CHECKING:
    from attribution.attributor import Attributor

UNSURE = 0.8
"""Below it are about a tenth of survival's verdicts, sources of `python -m benchmarks calibration` counting alike."""


@dataclass(frozen=True, slots=True)
class Triage:
    """An `Attributor` that asks `first`, and `second` if `first` abstains or its confidence is below `unsure`.

    If both name something, the more confident one wins and the other is kept as an alternative.
    """

    first: Attributor
    second: Attributor
    unsure: float = UNSURE

    def attribute(self, case: Case) -> Attribution:
        """Whose fault the case is. If `second` runs out of time, the result of `first` is kept.

        Raises:
            BudgetExceededError: a budget does not allow the next call.
            OutOfTimeError: as `second`, where `first` abstains.
        """
        return self.explain(case).attribution

    def explain(self, case: Case) -> Explained:
        """As `attribute`, with the steps of both."""
        first = explained(self.first, case)
        cheap = first.attribution
        if case.passed or (cheap.main is not None and cheap.main.confidence >= self.unsure):
            return first
        try:
            second = explained(self.second, case)
        except OutOfTimeError:
            if cheap.main is None:
                raise
            return first
        return Explained(better(cheap, second.attribution), (*first.steps, *second.steps))


def better(cheap: Attribution, costly: Attribution) -> Attribution:
    """The more confident of two verdicts on a case, with the other as an alternative; an abstention does not count."""
    if costly.main is None:
        return cheap if cheap.main is not None else costly
    if cheap.main is None:
        return costly
    surer, other = (costly, cheap) if costly.main.confidence > cheap.main.confidence else (cheap, costly)
    return replace(surer, alternatives=(*other.decisive, *surer.alternatives))
