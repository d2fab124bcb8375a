"""A race of whole combinations, which ends with one that the gate accepts or with none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from optimizer.evaluation.evaluator import Outcome
from optimizer.gating.gate import GateOutcome, look_schedule
from optimizer.search.joint_choice import Combination, Evaluate, further

SURVIVORS = 2
"""Combinations that go on after the first look at their race; after any later one only the best does."""


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
            (further(combination, champion[:count], schedule, evaluate) for combination in racing), key=_rank
        )
        if ranking and ranking[0].accepted:
            return [ranking[0], *map(_beaten, ranking[1:]), *dropped]
        undecided = [combination for combination in ranking if combination.decision is None]
        racing = undecided[: 1 if number else SURVIVORS]
        dropped = [*[combination for combination in ranking if combination not in racing], *dropped]
    return [*racing, *dropped]


def _rank(combination: Combination) -> tuple[bool, float]:
    """What the gate accepts first, then by gain."""
    return not combination.accepted, math.inf if combination.gain is None else -combination.gain


def _beaten(combination: Combination) -> Combination:
    """The combination with the decision that not it was accepted, but a better one."""
    if combination.decision is None or not combination.decision.accepted:
        return combination
    return replace(combination, decision=replace(combination.decision, outcome=GateOutcome.OUTDONE))
