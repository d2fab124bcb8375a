"""Joint choice: the few best texts of each prompt meet the whole pipeline, alone and together.

Prompts that help only together are found, and so are texts that help their own operation but not the answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from optimizer.racing.halving import LocalScore

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from tracing.systems.prompts import Candidate

RUNGS = ((4, 3), (8, 2))
"""Conversations that the combinations have met at the end of each rung, and how many of them go on."""

MOST = 6
"""Combinations that are tried in one round."""


@dataclass(frozen=True, slots=True)
class Combination:
    """Texts that replace the champion's, and how the system does with them.

    Attributes:
        parts: prompt name → its text with its local score.
        outcomes: on the conversations it has met, in order.
        gain: mean paired difference to the champion on them; None if one could not be scored.
    """

    parts: Mapping[str, LocalScore]
    outcomes: tuple[Outcome, ...] = ()
    gain: float | None = 0.0

    def candidate(self, champion: Candidate) -> Candidate:
        """The champion with these texts."""
        return {**champion, **{name: scored.arm.text for name, scored in self.parts.items()}}


Evaluate = Callable[["Combination", Sequence["Outcome"]], Sequence["Outcome"]]
"""Evaluates a combination on the conversations of some of the champion's outcomes."""


def combinations_of(finalists: Mapping[str, Sequence[LocalScore]]) -> list[Combination]:
    """All of the best together, the best of each prompt alone, then the second best of each."""
    found = [each for each in (_ranked(finalists, 0), _ranked(finalists, 1)) if each]
    best = found[0] if found else {}
    together = [Combination(best)] if len(best) > 1 else []
    alone = [Combination({name: scored}) for ranked in found for name, scored in ranked.items()]
    return [*together, *alone][:MOST]


def raced(combinations: Sequence[Combination], champion: Sequence[Outcome], evaluate: Evaluate) -> list[Combination]:
    """Race combinations over growing numbers of conversations; a last one that is ahead meets all of them.

    Args:
        combinations: to race.
        champion: the champion's outcomes, in the order in which their conversations are used.
        evaluate: evaluates a combination.

    Returns:
        All combinations as far as they got, the winner first.

    Raises:
        BudgetExceededError: a hard budget does not allow the next evaluation.
    """
    racing, dropped = list(combinations), list[Combination]()
    for count, survivors in (*((count, kept) for count, kept in RUNGS if count < len(champion)), (len(champion), 1)):
        racing = [_further(each, champion[:count], evaluate) for each in racing]
        racing.sort(key=lambda each: math.inf if each.gain is None else -each.gain)
        ahead = [each for each in racing[:survivors] if each.gain is not None and each.gain > 0]
        dropped = [*[each for each in racing if each not in ahead], *dropped]
        racing = ahead
    return [*racing, *dropped]


def most_evaluations(conversations: int) -> int:
    """Most evaluations of a conversation that one race over this many conversations makes."""
    met, count, racing = 0, 0, MOST
    for reached, left in (*RUNGS, (conversations, 1)):
        count += racing * (min(reached, conversations) - met)
        met, racing = min(reached, conversations), left
    return count


def _further(combination: Combination, champion: Sequence[Outcome], evaluate: Evaluate) -> Combination:
    """The combination evaluated on those conversations that it has not met."""
    met = len(combination.outcomes)
    outcomes = (*combination.outcomes, *evaluate(combination, champion[met:]))
    if any(outcome.tainted is not None for outcome in outcomes):
        return replace(combination, outcomes=outcomes, gain=None)
    gains = [new.score - old.score for new, old in zip(outcomes, champion, strict=True)]
    # Rounding must not make a zero gain look like a real one.
    return replace(combination, outcomes=outcomes, gain=round(sum(gains) / len(gains), 9))


def _ranked(finalists: Mapping[str, Sequence[LocalScore]], rank: int) -> dict[str, LocalScore]:
    return {name: scored[rank] for name, scored in finalists.items() if rank < len(scored)}
