"""Accept and crown: a winner becomes the champion if people approve and it is ahead again, or else notes why not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from optimizer.gating.decision import GateDecision, GateOutcome
from tracing.errors import BudgetExceededError

if TYPE_CHECKING:
    from optimizer.evaluation.variants import Settings
    from optimizer.tuning.iteration import Iteration
    from optimizer.tuning.results import Attempt
    from optimizer.tuning.tuning import Tuning
    from tracing.systems.prompts import Candidate


def crown_winner(
    tuning: Tuning,
    iteration: Iteration,
    keys: Iterable[str],
    candidate: Candidate,
    settings: Settings | None = None,
    *,
    inherited: Iterable[Attempt] = (),
) -> bool:
    """Make a winner the champion; where it may not be, its rewrites, and the settings noted last, get the reason.

    Args:
        tuning: the search.
        iteration: the one in which it won.
        keys: of its rewrites there, each of which must be approved.
        candidate, settings: what won.
        inherited: rewrites of earlier iterations in it, which must be approved too.

    Raises:
        BudgetExceededError: a hard budget does not allow it.
    """
    keys = tuple(keys)
    if not all(map(tuning.approves, (*(iteration.attempts[key] for key in keys), *inherited))):
        overrule(iteration, keys, GateOutcome.DECLINED, settings=bool(settings))
        return False
    try:
        crowned = tuning.crown(candidate, settings)
    except BudgetExceededError:
        overrule(iteration, keys, GateOutcome.OUT_OF_BUDGET, settings=bool(settings))
        raise
    if not crowned:
        overrule(iteration, keys, GateOutcome.UNCONFIRMED, settings=bool(settings))
    return crowned


def overrule(iteration: Iteration, keys: Iterable[str], outcome: GateOutcome, *, settings: bool = False) -> None:
    """Take back the decision on rewrites, and on the settings noted last if these won too."""
    for key in keys:
        attempt = iteration.attempts[key]
        iteration.attempts[key] = replace(attempt, gate=GateDecision(outcome, overruled=attempt.gate))
    if settings and iteration.settings:
        noted = iteration.settings[-1]
        iteration.settings[-1] = replace(noted, gate=GateDecision(outcome, overruled=noted.gate))
