"""A second look with fresh replies, for a task model that samples: what was lucky once is rarely lucky again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from optimizer.evaluation.noise import NoiseFloor, noise_floor

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator, Outcome, Progress
    from tracing.systems.conversations import Conversation
    from tracing.systems.prompts import Candidate

    Evaluated = tuple[Evaluator, Candidate]


class FreshReplies:
    """Evaluates candidates again; each look asks the models anew, and rebuilds memories too."""

    def __init__(self) -> None:
        self._looks = 0

    def confirm(
        self,
        champion: Evaluated,
        challenger: Evaluated,
        conversations: Sequence[Conversation],
        progress: Progress,
        margin: float = 0.0,
    ) -> bool:
        """Whether the challenger is ahead of the champion again, or behind by less than a margin, with fresh replies.

        Raises:
            BudgetExceededError: a hard budget ended it.
        """
        self._looks += 1
        new, old = (
            evaluator.repeated(self._looks).evaluate(candidate, conversations, progress=progress)
            for evaluator, candidate in (challenger, champion)
        )
        if any(outcome.tainted is not None for outcome in (*new, *old)):
            return False
        # Shares that cancel out must sum to exactly zero.
        ahead = sum(later.score - earlier.score + margin for later, earlier in zip(new, old, strict=True))
        return round(ahead, 9) > 0

    def noise(self, evaluated: Evaluated, outcomes: Sequence[Outcome], progress: Progress) -> NoiseFloor | None:
        """The noise floor, from these outcomes of a candidate and fresh ones; None if those cannot be scored.

        Raises:
            BudgetExceededError: a hard budget ended it.
        """
        conversations = [outcome.conversation for outcome in outcomes]
        self._looks += 1
        evaluator, candidate = evaluated
        fresh = evaluator.repeated(self._looks).evaluate(candidate, conversations, progress=progress)
        if any(outcome.tainted is not None for outcome in fresh):
            return None
        return noise_floor([outcomes, fresh])
