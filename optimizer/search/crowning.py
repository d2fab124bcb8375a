"""Accept and crown: a winner becomes the champion if people approve and it is ahead again, or else notes why not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from optimizer.gating.decision import GateDecision, GateOutcome
from tracing.errors import BudgetExceededError

if TYPE_CHECKING:
    from optimizer.evaluation.scores import Settings
    from optimizer.tuning.results import RewriteRecord
    from optimizer.tuning.round import Round
    from optimizer.tuning.tuning import Tuning
    from tracing.systems.prompts import Candidate


def crown_winner(
    tuning: Tuning,
    this_round: Round,
    keys: Iterable[str],
    candidate: Candidate,
    settings: Settings | None = None,
    *,
    inherited: Iterable[RewriteRecord] = (),
) -> bool:
    """Make a winner the champion; where it may not be, its rewrites, and the settings noted last, get the reason.

    Args:
        tuning: the search.
        this_round: the one in which it won.
        keys: of its rewrites there, each of which must be approved.
        candidate, settings: what won.
        inherited: rewrites of earlier rounds in it, which must be approved too.

    Raises:
        BudgetExceededError: a hard budget does not allow it.
    """
    keys = tuple(keys)
    if not all(map(tuning.approves, (*(this_round.rewrites[key] for key in keys), *inherited))):
        overrule(this_round, keys, GateOutcome.DECLINED, settings=bool(settings))
        return False
    try:
        crowned = tuning.crown(candidate, settings)
    except BudgetExceededError:
        overrule(this_round, keys, GateOutcome.OUT_OF_BUDGET, settings=bool(settings))
        raise
    if not crowned:
        overrule(this_round, keys, GateOutcome.UNCONFIRMED, settings=bool(settings))
    return crowned


def overrule(this_round: Round, keys: Iterable[str], outcome: GateOutcome, *, settings: bool = False) -> None:
    """Take back the decision on rewrites, and on the settings noted last if these won too."""
    for key in keys:
        rewrite = this_round.rewrites[key]
        this_round.rewrites[key] = replace(rewrite, gate=GateDecision(outcome, overruled=rewrite.gate))
    if settings and this_round.settings:
        noted = this_round.settings[-1]
        this_round.settings[-1] = replace(noted, gate=GateDecision(outcome, overruled=noted.gate))
