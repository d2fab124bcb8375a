"""Joint choice: the few best texts of each prompt meet the whole pipeline, alone and together.

Prompts that help only together are found, and so are texts that help their own operation but not the answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from optimizer.gating.decision import GateDecision, GateOutcome
from optimizer.gating.gate import LookSchedule, compare, look_schedule
from optimizer.proposers.rewrites import HAND
from optimizer.racing.halving import LocalScore

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.evaluation.scores import Settings
    from tracing.systems.prompts import Candidate

SURVIVORS = 2
"""Combinations that go on after the first look at a race; after any later one only the best does."""

MOST = 4
"""Combinations that are tried in one round, if the budget allows for them."""

SUPPORT, SUPPORT_OF_ONE = 1.0, 2.0
"""Standard errors that a text must gain to be tried together with others: if these are raced alone too, and if the
budget allows for one combination only. A choice."""


@dataclass(frozen=True, slots=True)
class Combination:
    """Texts that replace the champion's, and how the system does with them.

    Attributes:
        parts: prompt name → its text with its local score.
        settings: name → value of the system's settings that differ from the champion's.
        outcomes: on the conversations it has met, in order.
        gain: mean paired difference to the champion on them; None if one could not be scored.
        decision: the gate's; None if another combination was ahead before it came to one.
    """

    parts: Mapping[str, LocalScore]
    outcomes: tuple[Outcome, ...] = ()
    gain: float | None = 0.0
    decision: GateDecision | None = None
    settings: Settings = field(default_factory=dict)

    def candidate(self, champion: Candidate) -> Candidate:
        """The champion with these texts."""
        return {**champion, **{name: scored.rewrite.text for name, scored in self.parts.items()}}


Evaluate = Callable[["Combination", Sequence["Outcome"]], Sequence["Outcome"]]
"""Evaluates a combination on the conversations of some of the champion's outcomes."""


def combinations_of(
    finalists: Mapping[str, Sequence[LocalScore]], worth: Mapping[str, float] | None = None, most: int = MOST
) -> list[Combination]:
    """The best of each prompt together, and then texts alone, those first that are expected to fix the most answers.

    Together are only texts that gained more than the standard error of that: with few inputs a text that does harm is
    often the best one by chance, and would spoil the others. Where one combination is all that can be raced, nothing
    would tell that the others do well without it: then it takes twice that error.

    Args:
        finalists: prompt name → its texts, best first.
        worth: prompt name → share of the wrong answers that are its fault; equal shares if not given.
        most: how many can be raced.
    """
    support = SUPPORT if most > 1 else SUPPORT_OF_ONE
    best = {name: scored[0] for name, scored in finalists.items() if scored and _is_supported(scored[0], support)}
    together = [Combination(best)] if len(best) > 1 else []
    ranks = range(max(map(len, finalists.values()), default=0))
    ranked = [entry for rank in ranks for entry in _at(finalists, rank)]
    ranked.sort(key=lambda entry: -entry[1].expected * (1.0 if worth is None else worth.get(entry[0], 0.0)))
    return [*together, *(Combination({name: scored}) for name, scored in ranked)][:most]


def _at(finalists: Mapping[str, Sequence[LocalScore]], rank: int) -> list[tuple[str, LocalScore]]:
    return [(name, scored[rank]) for name, scored in finalists.items() if len(scored) > rank]


def _is_supported(scored: LocalScore, errors: float) -> bool:
    """Whether a gain is more than so many standard errors; what people wrote or nobody measured is not asked."""
    return scored.rewrite.source == HAND or not scored.inputs or scored.gain > errors * scored.error


def raced(combinations: Sequence[Combination], champion: Sequence[Outcome], evaluate: Evaluate) -> list[Combination]:
    """Race combinations over growing numbers of conversations, until the gate has decided on each, or on the best.

    Args:
        combinations: to race.
        champion: the champion's outcomes, in the order in which their conversations are used.
        evaluate: evaluates a combination.

    Returns:
        All combinations as far as they got; the first one won if its decision is to accept it.

    Raises:
        BudgetExceededError: a hard budget does not allow the next evaluation.
    """
    racing, dropped, schedule = list(combinations), list[Combination](), look_schedule(len(champion))
    for number, count in enumerate(schedule.counts):
        ranking = sorted(
            (_further(combination, champion[:count], schedule, evaluate) for combination in racing), key=_rank
        )
        if ranking and ranking[0].decision is not None and ranking[0].decision.accepted:
            return [ranking[0], *map(_beaten, ranking[1:]), *dropped]
        undecided = [combination for combination in ranking if combination.decision is None]
        racing = undecided[: 1 if number else SURVIVORS]
        dropped = [*[combination for combination in ranking if combination not in racing], *dropped]
    return [*racing, *dropped]


def most_evaluations(conversations: int, combinations: int = MOST) -> int:
    """Most evaluations of a conversation that a race of so many combinations over this many conversations makes."""
    before, count, racing = 0, 0, combinations
    for number, reached in enumerate(look_schedule(conversations).counts):
        count += racing * (reached - before)
        before, racing = reached, min(racing, 1 if number else SURVIVORS)
    return count


def affordable_combinations(conversations: int, evaluations: float | None) -> int:
    """How many combinations can race over so many conversations within a number of evaluations; one at least."""
    if evaluations is None:
        return MOST
    return max([1, *(count for count in range(1, MOST + 1) if most_evaluations(conversations, count) <= evaluations)])


def _rank(combination: Combination) -> tuple[bool, float]:
    """What the gate accepts first, then by gain."""
    accepted = combination.decision is not None and combination.decision.accepted
    return not accepted, math.inf if combination.gain is None else -combination.gain


def _beaten(combination: Combination) -> Combination:
    """The combination with the decision that not it was accepted, but a better one."""
    if combination.decision is None or not combination.decision.accepted:
        return combination
    return replace(combination, decision=replace(combination.decision, outcome=GateOutcome.OUTDONE))


def _further(
    combination: Combination, champion: Sequence[Outcome], schedule: LookSchedule, evaluate: Evaluate
) -> Combination:
    """The combination evaluated on those conversations that it has not met, and what the gate says then."""
    before = len(combination.outcomes)
    outcomes = (*combination.outcomes, *evaluate(combination, champion[before:]))
    comparison = compare(champion, outcomes)
    gain = comparison.delta if comparison.unscored is None else None
    return replace(combination, outcomes=outcomes, gain=gain, decision=schedule.decision(comparison))
