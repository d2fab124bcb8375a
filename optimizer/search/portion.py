"""What one round of the local search may spend of a limited budget, on recorded inputs and on whole conversations."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from optimizer.search.joint_choice import affordable_combinations, most_evaluations
from tracing.errors import BudgetExceededError, ShareSpentError

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.tuning.reserve import Affordable
    from optimizer.tuning.tuning import Tuning

LOCAL_PART = 0.5
"""Most of what a limited round can afford that is spent on recorded inputs; the rest is for the joint choice."""


MARGIN = 1.25
"""What evaluating a new text may take beyond the champion's, whose calls the estimate is made of. A choice."""


class Race(NamedTuple):
    """What a joint choice can afford.

    Attributes:
        order: the champion's outcomes on the conversations to race over, in this order.
        combinations: how many may race; 0 if none could be decided on.
    """

    order: Sequence[Outcome]
    combinations: int


class Portion:
    """What a round may evaluate of what a budget leaves, if later rounds are to have as much.

    Rounds for which too little would be left to decide on a single combination are not reckoned with. To decide is to
    evaluate a combination on all validation conversations, since nothing else becomes the champion: where the whole
    pool is too much, the race is over these first. Another text of a prompt late in the pipeline takes fewer calls:
    where texts of all prompts are too much, the round is for those of which it is not.

    Args:
        tuning: of the run.
        n: the round.
        pool: conversations that it may use.
        prompts: names of those that it would rewrite.

    Attributes:
        prompts: names of those that it can rewrite.

    Raises:
        BudgetExceededError: nothing is left besides the test.
        ShareSpentError: what is left is too little to decide on a text; others may need less.
    """

    def __init__(self, tuning: Tuning, n: int, pool: int, prompts: Collection[str]) -> None:
        self._tuning = tuning
        self._before = before = tuning.affordable()
        self.prompts: Collection[str] = prompts
        if before is None:
            self._share, self._local = None, 0.0
            return
        if before.conversations <= 0:
            raise BudgetExceededError("what remains is reserved for the test conversations")
        least = most_evaluations(pool, 1) / (1 - LOCAL_PART)
        self._share = before.shared(tuning.settings.rounds - n + 1, least)
        share, needed, possible = self._share.conversations, MARGIN * len(tuning.validation), list(prompts)
        while (most := self._conversations(share, possible, before)) <= needed and len(possible) > 1:
            # Without the prompt whose texts take most.
            possible.remove(min(possible, key=lambda name: self._conversations(share, [name], before)))
        if most <= needed:
            raise ShareSpentError(
                f"what remains pays for {most:.1f} conversations, too few to decide on another text, which has to "
                f"answer the {len(tuning.validation)} of validation"
            )
        self.prompts = possible
        self._local = min(LOCAL_PART, 1 - needed / most)

    def executions(self, operation: str, share: float) -> float | None:
        """Recorded inputs on which a prompt with this share of the round may rerun its operation."""
        return None if self._share is None else share * self._local * self._share.executions[operation]

    def race(self, order: Sequence[Outcome], prompts: Collection[str]) -> Race:
        """What can race now over these conversations, such that whatever wins can become the champion.

        Args:
            order: the champion's outcomes on them.
            prompts: names of those whose texts race.
        """
        affordable = self._tuning.affordable()
        if self._before is None or self._share is None or affordable is None:
            return Race(order, affordable_combinations(len(order), None))
        whole = self._share.conversations - (self._before.conversations - affordable.conversations)
        evaluations = self._conversations(whole, prompts, affordable)
        validation = {conversation.id for conversation in self._tuning.validation}
        unmet = len(validation - {outcome.conversation.id for outcome in order})
        if most_evaluations(len(order), 1) + unmet <= evaluations:
            return Race(order, affordable_combinations(len(order), evaluations - unmet))
        if evaluations < len(validation):
            return Race([], 0)
        first = sorted(order, key=lambda outcome: outcome.conversation.id not in validation)
        return Race(first[: int(evaluations) - unmet], 1)

    def _conversations(self, whole: float, prompts: Collection[str], affordable: Affordable) -> float:
        """How many conversations with new texts of these prompts take what `whole` with all texts new take."""
        these = self._tuning.affordable(prompts)
        if these is None or not affordable.conversations:
            return whole
        return whole * these.conversations / affordable.conversations
