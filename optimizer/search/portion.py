"""What one round of the local search may spend of a limited budget, on recorded inputs and on whole conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer.racing.joint import affordable_combinations, most_evaluations
from tracing.errors import BudgetExceededError

if TYPE_CHECKING:
    from optimizer.tuning.tuning import Tuning

LOCAL_PART = 0.5
"""Part of what a limited round can afford that is spent on recorded inputs; the rest is for the joint choice."""


class Portion:
    """What a round may evaluate of what a budget leaves, if later rounds are to have as much.

    Rounds for which too little would be left to decide on a single combination are not reckoned with.

    Args:
        tuning: of the run.
        n: the round.
        pool: conversations that it may use.

    Raises:
        BudgetExceededError: nothing is left besides the test.
    """

    def __init__(self, tuning: Tuning, n: int, pool: int) -> None:
        self._tuning = tuning
        self._before = tuning.affordable()
        if self._before is not None and self._before.conversations <= 0:
            raise BudgetExceededError("what remains is reserved for the test conversations")
        least = most_evaluations(pool, 1) / (1 - LOCAL_PART)
        self._share = None if self._before is None else self._before.shared(tuning.settings.rounds - n + 1, least)

    def executions(self, operation: str, share: float) -> float | None:
        """Recorded inputs on which a prompt with this share of the round may rerun its operation."""
        return None if self._share is None else share * LOCAL_PART * self._share.executions[operation]

    def combinations(self, pool: int) -> int:
        """How many combinations may race now over so many conversations."""
        left = self._tuning.affordable()
        if self._before is None or self._share is None or left is None:
            return affordable_combinations(pool, None)
        spent = self._before.conversations - left.conversations
        return affordable_combinations(pool, self._share.conversations - spent)
